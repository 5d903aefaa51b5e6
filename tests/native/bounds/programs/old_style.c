// class: O(n^1)
// why: parameters declared as before 1989
int old_style(n)
int n;
{
    int i;
    for (i = 0; i < n; i++)
        unknown();
    return i;
}
