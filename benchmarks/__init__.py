"""Speed and accuracy of Armwise beside named peers, measured in the same run."""
