/* Searches each line of its input for the regular expression PATTERN, as the programs of the manual's
   experiments do (section 10.1). */
#include <fstream>
#include <iostream>
#include <regex>
#include <string>

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    const std::regex pattern(PATTERN);
    std::ifstream file(arguments[1]);
    std::string line;
    unsigned found = 0;
    while (std::getline(file, line))
        found += std::regex_search(line, pattern);
    std::cout << found << '\n';
}
