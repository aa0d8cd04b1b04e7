"""Programs: tables of kernel calls with their memory, and how they run."""
