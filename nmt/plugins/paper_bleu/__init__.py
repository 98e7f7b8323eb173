"""The BLEUs of table 2: on Moses tokens, without and with hyphenated compounds split."""
