"""Beam search, sampling and forced decoding, and the engines that run them."""
