#include "src/model/tags.hpp"

namespace preflop {

namespace {
constexpr std::string_view kNames[kTags] = {"embed.tokens",   "embed.positions", "embed.add",
                                            "embed.norm",     "embed.dropout",   "attn.norm",
                                            "attn.q",         "attn.k",          "attn.v",
                                            "attn.q_norm",    "attn.k_norm",     "attn.q_rope",
                                            "attn.k_rope",    "core.copy",       "core.qk",
                                            "core.softmax",   "core.dropout",    "core.pv",
                                            "core.attention", "attn.gate",       "attn.gate_act",
                                            "attn.gate_mul",  "attn.out",        "attn.post_norm",
                                            "attn.dropout",   "attn.add",        "mlp.norm",
                                            "mlp.gate",       "mlp.up",          "mlp.act",
                                            "mlp.mul",        "mlp.down",        "mlp.post_norm",
                                            "mlp.dropout",    "mlp.add",         "block.add",
                                            "mla.q_down",     "mla.q_norm",      "mla.q_up",
                                            "mla.kv_down",    "mla.k_rope",      "mla.kv_norm",
                                            "mla.k_up",       "mla.v_up",        "ssm.norm",
                                            "ssm.z",          "ssm.x",           "ssm.b",
                                            "ssm.c",          "ssm.dt",          "ssm.beta",
                                            "ssm.conv",       "ssm.scan",        "ssm.act",
                                            "ssm.mul",        "ssm.out_norm",    "ssm.out",
                                            "ssm.add",        "index.q",         "index.k",
                                            "index.norm",     "index.weights",   "index.scores",
                                            "index.choice",   "moe.router",      "moe.route",
                                            "moe.latent_in",  "moe.permute",     "moe.dispatch",
                                            "moe.gather",     "moe.sort",        "exp.gate",
                                            "exp.up",         "exp.act",         "exp.mul",
                                            "exp.down",       "moe.unsort",      "moe.scatter",
                                            "moe.combine",    "moe.unpermute",   "moe.latent_out",
                                            "shared.gate",    "shared.up",       "shared.act",
                                            "shared.mul",     "shared.down",     "shared.scale_logit",
                                            "shared.scale",   "moe.add",         "mtp.embed",
                                            "mtp.embed_norm", "mtp.norm",        "mtp.join_hidden",
                                            "mtp.join_embed", "mtp.add",         "head.norm",
                                            "head.out",       "head.loss"};
}  // namespace

std::string_view name(Tag tag) { return kNames[static_cast<int>(tag)]; }

std::string_view group(Tag tag) {
  const std::string_view full = name(tag);
  return full.substr(0, full.find('.'));
}

std::optional<Tag> tag_of(std::string_view text) {
  for (int i = 0; i < kTags; ++i) {
    if (kNames[i] == text) return static_cast<Tag>(i);
  }
  return std::nullopt;
}

bool matches(Tag tag, std::string_view pattern) {
  return pattern == "*" || pattern == name(tag) || pattern == group(tag);
}

bool known_pattern(std::string_view pattern) {
  for (int i = 0; i < kTags; ++i) {
    if (matches(static_cast<Tag>(i), pattern)) return true;
  }
  return false;
}

}  // namespace preflop
