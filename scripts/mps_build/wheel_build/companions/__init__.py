"""torchvision and torchaudio: what each is built with, where its source and its torch come from, what it must do."""
