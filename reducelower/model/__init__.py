"""What a model holds, and how it is read; nothing here knows of targets."""
