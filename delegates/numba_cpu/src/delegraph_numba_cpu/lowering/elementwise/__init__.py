"""Element-wise operators: claims, and the chains that compute them."""
