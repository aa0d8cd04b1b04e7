"""Programs: tables of kernel calls with their memory, and their execution."""
