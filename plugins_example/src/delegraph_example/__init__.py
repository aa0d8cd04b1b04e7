"""Two small delegates, as a third party would publish them: ``sin`` and ``add_sub``."""
