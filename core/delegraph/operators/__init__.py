"""What an operator is: tensors, nodes, registrations, the op table, custom operators."""
