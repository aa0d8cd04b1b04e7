"""Small delegates, as a third party would publish them."""
