"""What several commands share: options declared once, the parser, the ends of verifications."""
