"""What search engines log: features, judgments and clicks, and how they are joined."""
