"""What the paper's words are taken to mean: the numbers that decide its claims."""

# Ratios of errors, geometric means over stages
ALIKE = 1.25  # "similar", "on par", "not significantly different": between 1 / ALIKE and ALIKE
SLIGHT = 1.03  # "by a small margin", "an advantage": below 1 / SLIGHT
CLEAR = 1.5  # "significantly", "noticeably", "marked": below 1 / CLEAR
BIG = 2.0  # "a big difference": below 1 / BIG
QUICK = 3.0  # "converges quickly, which random features cannot": below 1 / QUICK, at one size
NOT_WORSE = 1.05  # "does not outperform": the ratio of the errors at one size is below NOT_WORSE
DETERIORATED = 1.2  # "deteriorates": above DETERIORATED, and above the ratio for networks of sizes in EARLY

# Other properties of errors and times
REACHED = 1.15  # "reaches the noise level": an error of at most REACHED noise levels
HALF_WAY = 0.5  # "closer to sparse", "close to sparse": more than this share of the way from uniform, in log error
STAGNANT = -0.25  # "stagnates": a slope of log error over log N above STAGNANT
EXPENSIVE = 10.0  # "orders of magnitude more expensive": more than EXPENSIVE times the seconds

# Hyperplanes
DEGREES = 10.0  # "along a direction": a normal within this angle
MOSTLY = 0.9  # "aligned": at least this share of the weight along a direction
SMEARED = 0.75  # "smeared", "blurred": at most this share of the weight along a direction
STEEP = 0.3  # "where the function varies": |x| < STEEP for the bump; 30% of a uniform density are there
CONCENTRATED = 0.6  # "more inflection points": more than this share of them is there
ALIGNED = 0.1  # "align with the level sets": mean |cos| to the gradients above that of uniform by more than ALIGNED

# Numbers of neurons N. Errors of the first stages are left out: they depend on chance.
FROM_1D = 8
FROM_2D = 13
FROM_2D_HARD = 24  # on the corner and the separable function
FROM_ND = 30
LARGE = 200  # "for higher accuracy"
EARLY = (50, 250)
FEW = 50  # "at few neurons"
ABOUT_11 = (7, 13)
ABOUT_30 = (17, 40)
SIZES_1D = (4, 12)  # sizes of trained networks at which methods are compared on the bump
