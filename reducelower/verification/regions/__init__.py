"""Two models aligned, and the regions in which they differ cut out of them."""
