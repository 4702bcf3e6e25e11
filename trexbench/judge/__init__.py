"""Other people's change-point detection, behind core's Segmenter."""
