"""One module a family of operators; the first look-up in the table imports them all."""
