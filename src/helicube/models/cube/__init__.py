"""The Cube 3D architecture: decoder, shape tokenizers, text towers, checkpoints."""
