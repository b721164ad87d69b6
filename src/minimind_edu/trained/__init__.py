"""What was trained for the book, and how: programs, stored runs and small models.

    python -m minimind_edu.trained.living       three seeds, 15 minutes of one core each: the book's model and its card
    python -m minimind_edu.trained.living.repeating      younger models of its recipe, and their loops: ten minutes
    python -m minimind_edu.trained.ablations    chapter 13, two seeds for each of 17 variants: ten minutes
    python -m minimind_edu.trained.ablations.rates       and those that lose much, at two other rates: four minutes
    python -m minimind_edu.trained.deep_sums    chapter 10, norms and large additions, three seeds: three minutes
    python -m minimind_edu.trained.sweeps       its board of five parts, learning rates and sizes: half an hour
    python -m minimind_edu.trained.routing      the routers of chapter 9, three seeds for each: a minute or two
    python -m minimind_edu.trained.routing.phone_book    and its phone books, three seeds for each: some 25 minutes
    python -m minimind_edu.trained.sharing      chapter 6, five seeds for each variant: twenty minutes
    python -m minimind_edu.trained.sharing.circles       and the keys of one head, at several settings: 45 minutes
    python -m minimind_edu.trained.tuning       chapter 17: masks, rates, LoRA and DPO on the book's model: ten minutes
    python -m minimind_edu.trained.verse        poems that rhyme, half an hour of one core for each seed and control

After any of them, `make refresh` runs the chapters again and draws the stills.
"""
