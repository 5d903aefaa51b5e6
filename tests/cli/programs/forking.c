#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    static char zeros[4096];
    if (count > 1) {
        int filler = open(words[1], O_WRONLY | O_CREAT, 0600);
        while (write(filler, zeros, sizeof zeros) > 0) ;
    }
    if (fork() == 0) { free(malloc(100)); _exit(0); }
    wait(NULL);
    if (count > 2) unlink(words[1]);
    return 0;
}
