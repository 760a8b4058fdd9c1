"""What the paper's words are taken to mean: the numbers that decide its claims. One word has one meaning everywhere."""

# Ratios of errors, geometric means over the stages from the third on: the first two depend on chance
FIRST_STAGE = 2  # of the eight, counted from zero: N = 8, 13 and 19 in one, two and more dimensions
ALIKE = 1.25  # "similar", "on par", "the same", "not significantly different": between 1 / ALIKE and ALIKE
SLIGHT = 1.03  # "outperforms", "a small margin", "an advantage", "lower": below 1 / SLIGHT
CLEAR = 1.5  # "significant", "noticeable", "marked", "substantial", "sensitive": below 1 / CLEAR or above CLEAR
BIG = 2.0  # "a big difference": below 1 / BIG
QUICK = 3.0  # "converges quickly, which random features cannot": below 1 / QUICK, at one size

# Other properties of errors and times
REACHED = 1.15  # "reaches the noise level": an error of at most REACHED noise levels
ABOUT = 1.5  # "with about N neurons": between N / ABOUT and N ABOUT
HALF_WAY = 0.5  # "closer to sparse", "close to sparse": more than this share of the way from uniform, in log error
STAGNANT = -0.25  # "stagnates": a slope of log error over log N above STAGNANT
EXPENSIVE = 100.0  # "orders of magnitude more expensive": more than EXPENSIVE times the seconds

# Hyperplanes
DEGREES = 10.0  # "along a direction": a normal within this angle
MOSTLY = 0.9  # "aligned": at least this share of the weight along a direction
SMEARED = 0.75  # "smeared", "blurred": at most this share of the weight along a direction
STEEP = 0.3  # "where the function varies": |x| < STEEP for the bump; 30% of a uniform density are there
CONCENTRATED = 0.6  # "more inflection points": more than this share of them is there
ALIGNED = 0.1  # "align with the level sets": mean |cos| to the gradients above that of uniform by more than ALIGNED
