// The stack files of this build, and what is said about broken ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

// Every building block that there is, in one model.
Architecture everything() {
  Architecture a = gpt({.h = 64, .a = 4});
  a.layers.clear();
  for (NormPlacement placement : {NormPlacement::sandwich, NormPlacement::split_pre}) {
    for (bool gated : {false, true}) {
      LayerKind k = gpt({.h = 64, .a = 4}).layers[0].kind;
      k.attention.rope = true;
      k.attention.qk_norm = QkNorm::head;
      k.placement = placement;
      k.mlp.gated = gated;
      a.layers.push_back({k, 1});
    }
  }
  LayerKind experts = gpt({.h = 64, .a = 4}).layers[0].kind;
  experts.attention.latent = LatentAttention{Count(32), 32, 16, 8, 16};
  experts.attention.indexer = SparseIndexer{4, 8, 16};
  experts.attention.rope = true;
  experts.experts = ExpertSpec{.count = 8,
                               .top_k = 2,
                               .width = 32,
                               .groups = 4,
                               .top_groups = 2,
                               .shared_width = 32,
                               .shared_gate = true,
                               .latent = 48};
  a.layers.push_back({experts, 1});
  LayerKind states = gpt({.h = 64, .a = 4}).layers[0].kind;
  states.attention.gate = true;
  a.layers.push_back({states, 1});
  for (const ScanKind kind : {ScanKind::mamba2, ScanKind::gated_delta}) {
    states.state_space = StateSpace{kind, 8, 16, 4, 16, 4, 64, true, true};
    a.layers.push_back({states, 1});
  }
  a.mtp_layers = 1;
  a.positions = Positions::learned;
  a.position_rows = 8;
  a.embedding_norm = true;
  a.embedding_dropout = 0.1;
  return a;
}

// The tags of its operators, before any stack.
std::set<std::string> base_tags() {
  std::set<std::string> out;
  for (const Block& block : build_model(everything()).blocks) {
    for (const Op& op : block.ops) out.insert(std::string(name(op.tag)));
  }
  return out;
}

// The same after a stack's rewrites.
std::set<std::string> rewritten_tags(const Stack& s, AttentionKernel kernel) {
  Recipe r = recipe_for(s, 64);
  r.attention = kernel;
  r.layout.cp = s.cp_allowed && kernel != AttentionKernel::unfused ? 2 : 1;
  r.layout.zero = s.zero_default;
  std::set<std::string> out;
  Architecture a = everything();
  std::erase_if(a.layers, [&](const LayerRun& run) {
    const auto& state = run.kind.state_space;
    const bool scans = !state || std::find(s.scans.begin(), s.scans.end(), name(state->kind)) != s.scans.end();
    return !scans || (run.kind.experts && !s.experts);
  });
  for (const BlockCost& block : run(a, s, r).a.blocks) {
    for (const WorkItem& w : block.work) out.insert(std::string(name(w.tag)));
  }
  return out;
}

bool covers(const std::string& pattern, const std::set<std::string>& tags) {
  return std::any_of(tags.begin(), tags.end(), [&](const std::string& t) { return matches(*tag_of(t), pattern); });
}

TEST(Tags, EveryTagOfTheVocabularyIsMadeByABlockOrARewrite) {
  std::set<std::string> made = base_tags();
  for (const Stack& s : stacks().all()) {
    for (AttentionKernel k : s.kernels) made.merge(rewritten_tags(s, k));
  }
  for (int i = 0; i < kTags; ++i)
    EXPECT_TRUE(made.count(std::string(name(static_cast<Tag>(i)))) == 1) << name(static_cast<Tag>(i));
}

TEST(Tags, NamesAreDistinctAndReadBack) {
  for (int i = 0; i < kTags; ++i) {
    const Tag tag = static_cast<Tag>(i);
    ASSERT_TRUE(tag_of(name(tag)).has_value()) << i;
    EXPECT_EQ(*tag_of(name(tag)), tag);
    EXPECT_TRUE(matches(tag, group(tag)) && matches(tag, "*") && known_pattern(name(tag)));
  }
  EXPECT_FALSE(tag_of("attn").has_value());
  EXPECT_FALSE(known_pattern("attn.") || known_pattern("") || known_pattern("att"));
}

TEST(StackData, EveryTagThatARuleNamesIsThereWhenItsTurnComes) {
  const std::set<std::string> base = base_tags();
  for (const Stack& s : stacks().all()) {
    std::set<std::string> known = base;
    for (AttentionKernel kernel : s.kernels) known.merge(rewritten_tags(s, kernel));
    for (const Rewrite& r : s.rewrites) {
      for (const std::string& tag : r.tags) EXPECT_TRUE(covers(tag, known)) << s.name << ": " << tag;
      EXPECT_FALSE(r.source.empty()) << s.name;
    }
    for (const Segment& segment : s.segments) {
      for (const std::string& tag : segment.tags) EXPECT_TRUE(covers(tag, known)) << s.name << ": " << tag;
      EXPECT_FALSE(segment.source.empty()) << s.name << " " << segment.name;
    }
  }
}

TEST(StackData, EverythingHasASourceAndAChoice) {
  EXPECT_GE(stacks().all().size(), 2U);
  for (const Stack& s : stacks().all()) {
    EXPECT_FALSE(s.summary.empty()) << s.name;
    EXPECT_FALSE(s.sources.empty()) << s.name;
    EXPECT_FALSE(s.kernels.empty() || s.losses.empty() || s.schedules.empty() || s.zero_allowed.empty()) << s.name;
    EXPECT_NE(s.segment("full"), nullptr) << s.name;
    EXPECT_TRUE(s.selective.empty() || s.segment(s.selective) != nullptr) << s.full_name();
    EXPECT_TRUE(s.sp_allowed || !s.sp_default) << s.full_name();
    for (const auto& saves : s.saves) {
      for (const Save& save : saves) EXPECT_FALSE(save.source.empty()) << s.name;
    }
    for (const LossRule& loss : s.losses) EXPECT_FALSE(loss.source.empty()) << s.name;
    for (const Scalar* x : {&s.vocab_multiple, &s.reserved_factor}) EXPECT_FALSE(x->source.empty()) << s.name;
    for (const Scalar* x : {&s.wgrad_dummy_width, &s.head_wgrad_width, &s.gathered_input_kept, &s.workspace_bytes,
                            &s.context_bytes, &s.communicator_bytes}) {
      EXPECT_TRUE(x->value == 0 || !x->source.empty()) << s.name;
    }
    EXPECT_GE(s.reserved_factor.value, 1) << s.name;
  }
}

// A generation has its own list of what may be recomputed and of losses, or that of the one before it; "*" is all.
TEST(StackData, GenerationsHaveWhatTheirReleaseHad) {
  EXPECT_EQ(stack("megatron@2021").segments.size(), 1U);
  EXPECT_TRUE(stack("megatron@2021").selective.empty());
  EXPECT_EQ(stack("megatron@2022").selective, "core_attn");
  EXPECT_EQ(stack("megatron@nemo-25.02").loss(LossKind::fused), nullptr);
  EXPECT_NE(stack("megatron@nemo-25.09").loss(LossKind::fused), nullptr);
  EXPECT_EQ(stack("megatron@nemo-25.09").segments.size(), stack("megatron").segments.size());
  EXPECT_LT(stack("megatron@nemo-24.11").segments.size(), stack("megatron").segments.size());
  EXPECT_FALSE(stack("megatron@nemo-24.11").own_etp);
  EXPECT_TRUE(stack("megatron@nemo-25.02").own_etp);
}

TEST(StackData, NewestGenerationIsTheDefaultAndOthersAreNamed) {
  const Result<const Stack*> newest = stacks().find("megatron"), named = stacks().find("Megatron@core-0.14");
  ASSERT_TRUE(newest.ok() && named.ok());
  EXPECT_EQ((*newest)->name, "megatron");
  EXPECT_EQ((*named)->generation, "core-0.14");
  const Result<const Stack*> typo = stacks().find("megatrn"), old = stacks().find("megatron@core-0.1");
  ASSERT_FALSE(typo.ok() || old.ok());
  EXPECT_EQ(typo.error().where, "--stack");
  EXPECT_NE(typo.error().text().find("megatron"), std::string::npos) << typo.error().text();
  EXPECT_NE(old.error().text().find("core-0.14"), std::string::npos) << old.error().text();
}

// A whole stack in a few lines, to which a test adds what it needs.
const std::string kSmall =
    "name = \"toy\"\n"
    "selective = \"core\"\n"
    "[legal]\n"
    "zero = [0, 1]\n"
    "schedules = [\"1f1b\"]\n"
    "attention = [\"unfused\"]\n"
    "[[segment]]\n"
    "name = \"core\"\n"
    "tags = [\"core\"]\n"
    "source = \"a test\"\n"
    "[[loss]]\n"
    "kind = \"plain\"\n"
    "keep = [\"element:4\"]\n"
    "source = \"a test\"\n";

Result<StackCatalogue> with(const std::string& text) { return StackCatalogue::load({{"zz.toml", text}}); }

const Stack& found(const Result<StackCatalogue>& catalogue, const std::string& wanted) {
  static const Stack none;
  const Result<const Stack*> s = catalogue->find(wanted);
  if (!s) ADD_FAILURE() << s.error().text();
  return s ? **s : none;
}

TEST(StackData, GenerationsChangeSingleValuesAndKeepTheRest) {
  const auto loaded =
      with(kSmall +
           "[[save]]\nkind = \"product\"\nkeep = [\"in\"]\nsource = \"first\"\n"
           "[scalar.workspace_bytes]\nvalue = 7\nsource = \"first\"\n"
           "[[generation]]\nid = \"1\"\n"
           "[[generation]]\nid = \"2\"\n"
           "scalar.workspace_bytes = {value = 9, source = \"second\"}\n"
           "[[generation.segment]]\nname = \"core\"\ntags = [\"core\", \"mlp\"]\nsource = \"second\"\n"
           "[[generation.loss]]\nkind = \"plain\"\nkeep = [\"in\"]\nin_place = true\nsource = \"second\"\n"
           "[[generation]]\nid = \"3\"\n"
           "[[generation.save]]\nkind = \"product\"\nkeep = [\"in\", \"element:1\"]\nsource = \"third\"\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  const std::size_t product = static_cast<std::size_t>(Kind::product);
  const Stack &one = found(loaded, "toy@1"), &two = found(loaded, "toy@2"), &three = found(loaded, "toy");
  EXPECT_EQ(three.generation, "3");
  EXPECT_EQ(one.workspace_bytes.value, 7);
  EXPECT_EQ(two.workspace_bytes.value, 9);
  EXPECT_EQ(three.workspace_bytes.value, 9);
  EXPECT_EQ(one.segment("core")->tags.size(), 1U);
  EXPECT_EQ(two.segment("core")->tags.size(), 2U);
  EXPECT_EQ(three.segment("core")->tags.size(), 2U);
  EXPECT_EQ(three.segments.size(), 1U);
  EXPECT_EQ(one.losses.front().saves.front().what, Save::What::element);
  EXPECT_EQ(three.losses.size(), 1U);
  EXPECT_TRUE(three.losses.front().in_place);
  EXPECT_EQ(two.saves[product].size(), 1U);
  EXPECT_EQ(three.saves[product].size(), 2U);
}

TEST(StackData, AChildStartsFromTheNewestGenerationOfItsParent) {
  const auto loaded = with("name = \"megatron-toy\"\ninherits = \"megatron\"\n[defaults]\nzero = 0\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  const Stack &child = found(loaded, "megatron-toy"), &parent = found(loaded, "megatron");
  EXPECT_EQ(child.generation, "");
  EXPECT_EQ(child.zero_default, 0);
  EXPECT_EQ(parent.zero_default, 1);
  EXPECT_EQ(child.rewrites.size(), parent.rewrites.size());
  EXPECT_EQ(child.workspace_bytes.value, parent.workspace_bytes.value);
}

struct Broken {
  std::string text;         // after kSmall, or alone when it begins with "name"
  int line;                 // of the whole text; 0 = any
  std::string what, valid;  // parts of the message
};

TEST(StackData, ABrokenFileIsNamedWithItsLine) {
  const Broken table[] = {
      {"name = \n", 1, "", ""},
      {"name = \"x\"\nsumary = \"y\"\n", 2, "sumary", "summary"},
      {"name = \"x\"\ninherits = \"megatro\"\n", 2, "megatro", "name of a stack"},
      {"name = 5\n", 1, "", ""},
      {"name = \"x\"\n", 0, "no ZeRO stage", "zero"},
      {"[[save]]\nkind = \"prodct\"\nkeep = [\"in\"]\nsource = \"s\"\n", 16, "prodct", "kind"},
      {"[[save]]\nkind = \"product\"\nkeep = [\"inn\"]\nsource = \"s\"\n", 17, "inn", "element:BYTES"},
      {"[[save]]\nkind = \"product\"\nkeep = [\"element:-1\"]\nsource = \"s\"\n", 17, "element:-1", "element:BYTES"},
      {"[[save]]\nkind = \"product\"\nkeep = [\"row:x\"]\nsource = \"s\"\n", 17, "row:x", "row:BYTES"},
      {"[[save]]\nkind = \"product\"\nkeep = [\"in\"]\n", 15, "source", ""},
      {"[[save]]\nkind = \"product\"\nkeep = [\"in\"]\nsource = \"s\"\nwidth = 2\n", 19, "width", ""},
      {"[[rewrite]]\nrule = \"merg\"\ntags = [\"attn\"]\nsource = \"s\"\n", 16, "merg", "merge, fuse"},
      {"[[rewrite]]\nrule = \"merge\"\ntags = [\"attn.qq\"]\nsource = \"s\"\n", 17, "attn.qq", "tag"},
      {"[[rewrite]]\nrule = \"merge\"\ntags = [\"attn\"]\nwhen = \"rain\"\nsource = \"s\"\n", 18, "rain",
       "fused_attention"},
      {"[[rewrite]]\nrule = \"fuse\"\ntags = [\"core\"]\nsource = \"s\"\n", 15, "into", ""},
      {"[[rewrite]]\nrule = \"fuse\"\ntags = [\"core\"]\ninto = \"core.x\"\nkind = \"attention\"\nsource = \"s\"\n", 18,
       "tag", "core.attention"},
      {"[[rewrite]]\nrule = \"merge\"\ntags = [\"attn\"]\n", 15, "source", ""},
      {"[[loss]]\nkind = \"plan\"\nkeep = [\"in\"]\nsource = \"s\"\n", 16, "plan", "plain"},
      {"[[loss]]\nkind = \"fused\"\nkeep = [\"in\"]\ngradient_width = -2\nsource = \"s\"\n", 18, "negative",
       "0 or more"},
      {"[[segment]]\nname = \"x\"\ntags = [\"heart\"]\nsource = \"s\"\n", 17, "heart", "tag"},
      {"[defaults]\nweight_dtype = \"bf17\"\n", 16, "bf17", "bf16"},
      {"[defaults]\nrecompute = \"some\"\n", 16, "some", "selective"},
      {"[defaults]\nzero = 3\n", 16, "3", "legal.zero"},
      {"[defaults]\nsp = 1\n", 16, "sp", ""},
      {"[scalar.workspace_byte]\nvalue = 1\nsource = \"s\"\n", 15, "workspace_byte", "workspace_bytes"},
      {"[scalar.workspace_bytes]\nvalue = 1\n", 15, "source", ""},
      {"[scalar.workspace_bytes]\nvalue = -1\nsource = \"s\"\n", 16, "negative", "0 or more"},
      {"[scalar.workspace_bytes]\nvalue = nan\nsource = \"s\"\n", 16, "", ""},
      {"[[generation]]\nsummary = \"no id\"\n", 15, "id", ""},
      {"[[generation]]\nid = \"1\"\nselective = \"cor\"\n", 17, "cor", "segment"},
      {"[[generation]]\nid = \"1\"\n[generation.legal]\nschedules = [\"1f1c\"]\n", 18, "1f1c", "1f1b"},
      {"[[generation]]\nid = \"1\"\n[generation.legal]\nzero = [0, 4]\n", 18, "4", "0, 1, 2 or 3"},
      {"[[generation]]\nid = \"1\"\n[generation.legal]\nattention = [\"flash\"]\n", 18, "flash", "fa2"},
      {"[[generation]]\nid = \"1\"\n[generation.legal]\nattention = []\n", 0, "attention", "fa2"},
      {"[[generation]]\nid = \"1\"\n[generation.legal]\nrecompute = [\"cor\"]\n", 18, "cor", "segment"},
      {"[[generation]]\nid = \"1\"\n[generation.legal]\nloss = [\"chunked\"]\n", 18, "chunked", "loss"},
      {"[[generation]]\nid = \"1\"\n[generation.legal]\ncp = 2\n", 18, "cp", ""},
  };
  for (const Broken& b : table) {
    const std::string text = b.text.starts_with("name") ? b.text : kSmall + b.text;
    const auto loaded = with(text);
    ASSERT_FALSE(loaded.ok()) << b.text;
    const Error& e = loaded.error();
    const std::string place = "data/stacks/zz.toml:" + (b.line > 0 ? std::to_string(b.line) + ":" : "");
    EXPECT_TRUE(e.where.starts_with(place)) << b.text << "\nsaid: " << e.text() << "\nexpected at " << place;
    EXPECT_NE((e.where + e.what).find(b.what), std::string::npos) << b.text << "\nsaid: " << e.text();
    EXPECT_NE((e.what + e.valid).find(b.valid), std::string::npos) << b.text << "\nsaid: " << e.text();
  }
}

}  // namespace
}  // namespace preflop::test
