# %% [markdown]
# # Parsing orders at a counter
#
# "A tea with milk and two cakes": who gets the milk, and is it one order or two? A parse tree says which words belong
# together. We learn a parser from orders with their trees, and look at what it has learned.

# %%
import numpy as np

from maxmargin import TreeSVM

random = np.random.default_rng(3)

# %% [markdown]
# Simulated orders. An order is a list of items; an item is a number and a thing, which may have something with it. Drinks
# go with milk or sugar, and cakes with cream or jam. So the words tell what belongs together.

# %%
DRINKS, CAKES = ["tea", "coffee", "cocoa"], ["cake", "waffle", "scone"]
WITH = {"drink": ["milk", "sugar"], "cake": ["cream", "jam"]}


def item():
    kind = ["drink", "cake"][random.integers(2)]
    thing = random.choice(DRINKS if kind == "drink" else CAKES)
    item = ("ITEM", ("NUM", random.choice(["a", "two", "three"])), ("THING", thing))
    if random.random() < 0.6:
        item = ("ITEM", item, ("EXTRA", ("WITH", "with"), ("THING", random.choice(WITH[kind]))))
    return item


def order():
    first = item()
    return ("ORDER", first, ("AND", "and"), item()) if random.random() < 0.5 else ("ORDER", first)


def plain(tree):
    return tuple(str(part) if isinstance(part, str) else plain(part) for part in tree)


trees = [plain(order()) for _ in range(120)]
known, new = trees[:80], trees[80:]
print(known[0])

# %% [markdown]
# The parser reads a grammar off the trees: which phrases there are, and what they are made of. The weights of its rules and
# of the features of words are learned, and the gap states how far they are from the best ones.

# %%
parser = TreeSVM(C=1.0, tol=1e-3).fit(known)
print(f"objective {parser.objective_:.4f}, proven within {parser.gap_:.1e} of the optimum")
print(f"labelled F1 on new orders: {parser.score(new):.3f}")

# %% [markdown]
# Sentences are texts, or lists of words. Words that training has not seen are no problem: their neighbours and their last
# letters tell what they are.

# %%
for tree in parser.predict(["a tea with milk and two cakes with jam", ["three", "juices", "with", "sugar"]]):
    print(tree)

# %% [markdown]
# The same model can be saved, verified and used by the command. `verify` computes the bound again from the trees.

# %%
objective, bound, gap = parser.verify(known)
print(f"verified: {bound:.4f} ≤ optimum ≤ {objective:.4f}")

# %% [markdown]
# What this example claims.

# %%
assert parser.converged_ and gap <= 1e-3
assert parser.score(new) > 0.95
assert parser.predict(["a tea with milk"]) == ["(ORDER (ITEM (ITEM (NUM a) (THING tea)) (EXTRA (WITH with) (THING milk))))"]
