"""The demo: a small int8 network that reads handwritten digits, exported by the stock wheel."""
