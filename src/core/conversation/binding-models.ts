/**
 * Says which models may bind their thinking to its prefix, so that the provider checks that nothing before a thought
 * has changed. The tables list the models that are known not to bind. Every other model counts as binding, because
 * providers have so far added models with the check, and removed it from none.
 * Sources: platform.claude.com, preserved thinking and prefix checks (2026-11: Fable 5.1 and 5.2, Mythos 5.1 and
 * 5.2, Opus 5.5, Sonnet 5.5, Haiku 5.5 check; Opus 5, Sonnet 5, Fable 5, Haiku 4.5 and older do not);
 * developers.openai.com, keep prefix unchanged (2026-11: "newer frontier models", none is named).
 */

/** For each Claude family the newest version that does not bind its thinking, times ten: 50 is version 5.0. */
const CLAUDE_UNBOUND: Readonly<Record<string, number>> = {
  opus: 50,
  sonnet: 50,
  fable: 50,
  haiku: 45,
};

// Matches `claude-opus-4-5-20251101`, `us.anthropic.claude-opus-5-v1:0`, `claude-sonnet-5@20260901` and
// `claude-opus-5[1m]`.
const CLAUDE = /claude-([a-z]+)-(\d)(?:[-.](\d))?(?![\d])/;
// Matches names before Claude 4, which begin with the version: `claude-3-5-sonnet-20241022`, `claude-2.1`,
// `claude-instant-1.2`.
const OLD_CLAUDE = /claude-(?:[123](?:[-.]|$)|instant)/;
/**
 * The newest GPT version that does not bind its thinking, times ten. GPT-5.6 may be one of the "newer frontier models":
 * its documents are the first that mention reasoning which is kept between requests.
 */
const GPT_UNBOUND = 55;
const GPT = /(?:^|[/.])gpt-(\d+)(?:\.(\d))?/;
const OLD_OPENAI = /(?:^|[/.])(?:o[134](?:-|$)|chatgpt-4|codex-mini|gpt-oss)/;

/** Says whether a model may bind its thinking. A request without a model counts as binding. */
export function bindsThinking(model: string | undefined): boolean {
  const name = (model ?? '').toLowerCase();
  const [, family = '', major = '', minor = '0'] = CLAUDE.exec(name) ?? [];
  const newest = CLAUDE_UNBOUND[family];
  if (newest !== undefined) return Number(major) * 10 + Number(minor) > newest;
  if (OLD_CLAUDE.test(name) || OLD_OPENAI.test(name)) return false;
  const [, gpt, point = '0'] = GPT.exec(name) ?? [];
  return gpt === undefined || Number(gpt) * 10 + Number(point) > GPT_UNBOUND;
}

/** Matches the suffix with which Claude Code asks for a model's window of a million tokens. */
export const LONG_MARK = /\[1m\]$/i;
