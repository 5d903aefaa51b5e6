int second(int x);
