import sys
from collections import Counter
from pathlib import Path
from host_mutants.rules import RULES, applied
from host_mutants.text import Text
import re
base=Path(sys.argv[1]); n=Counter(); files={}
for f in sorted([*base.glob("mps/*.mm"),*base.glob("native/mps/*.mm"),*base.glob("native/mps/operations/*.mm")]):
    t=Text(f.read_text()); c=Counter()
    for r in RULES:
        for e in r.find(t):
            c[r.name]+=1
            if len(sys.argv)>2 and r.name in sys.argv[2].split(","):
                l=t.line(e.start); print(f.name,l,repr(t.whole[e.start:e.end])[:110],"=>",repr(e.new)[:90])
    files[f.name]=sum(c.values()); n.update(c)
print(n); print(len(files), sum(files.values())); print(sorted((v,k) for k,v in files.items())[:15])
