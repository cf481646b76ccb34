// Parts of the ledger's lines: what a stage's blocks are, and what follows its parameters. Used by moments.cpp alone.
#pragma once

#include <vector>

#include "src/step/memory.hpp"

namespace preflop::moments {

inline const BlockCost& cost(const Analysed& a, int block) { return a.blocks[static_cast<std::size_t>(block)]; }
// A stage's blocks with how often each occurs, in forward order.
std::vector<BlockRun> runs(const Analysed& a, const Stage& stage);

// Weights, gradients, optimizer states.
void add_states(std::vector<Line>& out, const Analysed& a, const Stage& stage);
// The same of what is kept on the host, and the gradients that are handed to it for its update.
void add_host_states(std::vector<Line>& out, const Analysed& a, const Stage& stage);
// Caches and workspaces that stay.
void add_buffers(std::vector<Line>& out, const Analysed& a, const Stage& stage);
// What follows the parameters beside their states while the step runs, by the stack's rules.
void add_live(std::vector<Line>& out, const Analysed& a, const Stage& stage, Moment moment);
// What the optimizer allocates while it steps, per parameter that this rank updates.
void add_optimizer_temporary(std::vector<Line>& out, const Analysed& a, const Stage& stage);

}  // namespace preflop::moments
