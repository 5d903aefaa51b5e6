#!/bin/sh
# Strange: it is a script, which starts other programs.
sum=0
for n in 1 2 3 4 5; do
  sum=$((sum + $(echo "$n" | wc -c)))
done
echo "$sum" | sed 's/^/sum /'
exit 4
