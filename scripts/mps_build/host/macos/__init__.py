"""What Apple's tools print: each fact parsed from text, apart from the call that asks for it."""
