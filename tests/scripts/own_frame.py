import sys

import pandas as pd

from rlm_loop import ToolLoopAgent

orders = pd.DataFrame({"customer": ["Ann", "Bob", "Ann", "Cy"], "total": [10, 25, 30, 5]})

with ToolLoopAgent(sys.argv[1]).session(context=orders) as talk:
    print(talk.ask("Which customer spent most?").answer)
    print(talk.ask("And how much is that?").answer)
