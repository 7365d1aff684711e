"""The engines that drive the loop. The store holds the truth; an engine only calls one step after another."""
