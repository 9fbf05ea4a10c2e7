#include "sim/wrong_command.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace gs {
namespace {

std::string answer_to(const std::string& line) {
  CLI::App app{"", "gpu-scheduler"};
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--verbose");
  CLI::App* sim = app.add_subcommand("sim");
  sim->require_subcommand(1);
  int seed = 0;
  sim->add_subcommand("faults")->add_option("--seed", seed)->required();
  sim->add_subcommand("topo");
  app.add_subcommand("serve");
  app.add_subcommand("run-task")->group("");
  try {
    app.parse(line);
  } catch (const CLI::ParseError& error) {
    const std::string text = describe_wrong_command(&app, error);
    return text.substr(0, text.find('\n'));
  }
  return "understood";
}

TEST(WrongCommand, AWordThatIsNoCommandIsNamed) {
  EXPECT_EQ(answer_to("srve"), "gpu-scheduler has no command 'srve'; did you mean serve?");
  EXPECT_EQ(answer_to("sim fualts"), "sim has no command 'fualts'; did you mean faults?");
  EXPECT_EQ(answer_to("sim banana"), "sim has no command 'banana'; there are faults, topo");
  EXPECT_EQ(answer_to("--sede 3"), "gpu-scheduler has no option --sede");
}

TEST(WrongCommand, WhereNoneIsGivenTheyAreListed) {
  EXPECT_EQ(answer_to("sim"), "sim needs a command: one of faults, topo");
  EXPECT_EQ(answer_to(""), "gpu-scheduler needs a command: one of sim, serve");
}

TEST(WrongCommand, AnOptionThatIsNoneIsNamedAndNotItsValue) {
  EXPECT_EQ(answer_to("sim faults --sede 3"), "faults has no option --sede; did you mean --seed?");
  EXPECT_EQ(answer_to("sim faults --sede=3"), "faults has no option --sede; did you mean --seed?");
  EXPECT_EQ(answer_to("sim faults --seed 3 --verbsoe"),
            "faults has no option --verbsoe; did you mean --verbose?");
  EXPECT_EQ(answer_to("sim faults --seed 3 --banana"), "faults has no option --banana");
  EXPECT_EQ(answer_to("sim faults --seed 3 banana"), "faults does not take 'banana'");
  EXPECT_EQ(answer_to("serve --seed 3"), "serve has no option --seed");
}

TEST(WrongCommand, AValueOfTheWrongKindIsNamedWithWhatIsTaken) {
  EXPECT_EQ(answer_to("sim faults --seed four"), "--seed takes a whole number, not 'four'");
  EXPECT_EQ(answer_to("sim faults --seed 1.5"), "--seed takes a whole number, not '1.5'");
  EXPECT_EQ(answer_to("sim faults --seed 99999999999"),
            "--seed takes a whole number, not '99999999999'");
}

TEST(WrongCommand, OtherMistakesAreNotTakenForAWrongCommand) {
  EXPECT_EQ(answer_to("sim faults"), "--seed is required");
  EXPECT_EQ(answer_to("sim faults --seed 3"), "understood");
}

}  // namespace
}  // namespace gs
