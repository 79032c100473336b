import { field, isObject, listField, textField } from '../scripted-provider/loose-json.ts';
import { claudeModel, takesSystemMessages } from './claude-models.ts';
import { type ModelRequest, type Refusal, shape } from './judgement.ts';
import { isAtLeast, type Readings } from './settings.ts';

/** What Anthropic refuses whatever the thinking says: a function for each rule, the first refusal counts. */

const RULES = [
  bindingField,
  thinkingAlways,
  filled,
  systemMessages,
  firstMessage,
  texts,
  calls,
  results,
  cacheMarks,
  contextManagement,
];

export function refusedShape(request: ModelRequest, readings: Readings): Refusal | undefined {
  for (const rule of RULES) {
    const refusal = rule(request, readings);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

export const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

/** The field needs its header, and has two values (preserved-thinking, 2026-09-26). */
function bindingField({ json, betas }: ModelRequest): Refusal | undefined {
  const thinking = field(json, 'thinking');
  const binding = field(thinking, 'block_binding');
  if (binding === undefined) return undefined;
  const path = `thinking.${textField(thinking, 'type')}.block_binding`;
  if (!betas.includes(BINDING_BETA)) return shape('', `${path}: Extra inputs are not permitted`);
  const behavior = textField(binding, 'prefix_mismatch_behavior');
  if (behavior === 'error' || behavior === 'drop_block') return undefined;
  return shape(`${path}.prefix_mismatch_behavior`, "Input should be 'error' or 'drop_block'");
}

/**
 * Thinking cannot be switched off, and no tool can be forced ("Breaking changes" of whats-new-opus-5-5, read 2026-11-29, which
 * names Fable 5.1 too). The words for a forced tool are made up.
 */
function thinkingAlways({ json }: ModelRequest): Refusal | undefined {
  const model = claudeModel(textField(json, 'model'));
  const floor = { opus: [5, 5], fable: [5, 1] } as const;
  const since = model && floor[model.family as keyof typeof floor];
  if (model === undefined || since === undefined || !isAtLeast(model.version, since))
    return undefined;
  const type = textField(field(json, 'thinking'), 'type');
  if (type === 'disabled' || type === 'enabled') {
    return shape(
      '',
      `"thinking.type.${type}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`,
    );
  }
  const choice = textField(field(json, 'tool_choice'), 'type');
  if (choice !== 'any' && choice !== 'tool') return undefined;
  return shape('tool_choice', 'Forced tool use is not supported for this model.');
}

/** The words of both are those of the public API (seen in issues of 2025). */
function filled({ json }: ModelRequest): Refusal | undefined {
  const messages = listField(json, 'messages');
  if (messages.length === 0) return shape('messages', 'at least one message is required');
  const at = messages.findIndex(
    (message, index) =>
      field(message, 'role') !== 'system' &&
      blocksOf(message).length === 0 &&
      !(index === messages.length - 1 && field(message, 'role') === 'assistant'),
  );
  if (at === -1) return undefined;
  return shape(
    `messages.${at}`,
    'all messages must have non-empty content except for the optional final assistant message',
  );
}

const DIRECTIVE =
  'the directive-only form (content: [] with output_config) is accepted at any position';

/** Where a system message may stand; the words were measured on claude-opus-5-5, 2026-10-06. */
function systemMessages({ json }: ModelRequest, readings: Readings): Refusal | undefined {
  const messages = listField(json, 'messages');
  const model = claudeModel(textField(json, 'model'));
  const roles = messages.map((message) => textField(message, 'role'));
  for (const [at, message] of messages.entries()) {
    const path = `messages.${at}`;
    if (roles[at] !== 'system') continue;
    if (model === undefined || !takesSystemMessages(model, readings)) {
      return shape(path, 'Unexpected role "system". Use the top-level `system` parameter.');
    }
    const isEmpty = blocksOf(message).length === 0;
    if (isEmpty && field(message, 'output_config') !== undefined) continue;
    if (isEmpty) return shape(path, 'system content must contain at least one block');
    const before = roles.slice(0, at).findLast((role) => role !== 'system');
    const behind = roles.slice(at).find((role) => role !== 'system');
    if (before === undefined) {
      return shape(
        path,
        `use the top-level 'system' parameter for the initial system prompt; ${DIRECTIVE}`,
      );
    }
    if (before !== 'user') {
      return shape(
        path,
        `role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result; ${DIRECTIVE}`,
      );
    }
    if (behind === 'user') {
      return shape(
        path,
        `role 'system' must precede an 'assistant' message or end the array; ${DIRECTIVE}`,
      );
    }
  }
  return undefined;
}

function firstMessage({ json }: ModelRequest): Refusal | undefined {
  const [first] = listField(json, 'messages');
  if (field(first, 'role') === 'user') return undefined;
  // What stands before a compaction block may be left out (compaction, 2026-08).
  if (blocksOf(first).some((block) => field(block, 'type') === 'compaction')) return undefined;
  return shape('messages', 'first message must use the "user" role');
}

/** An empty text block is refused in a message and in `system`, not inside a tool_result (measured 2026-09-02). */
function texts({ json }: ModelRequest): Refusal | undefined {
  const isEmpty = (block: unknown): boolean =>
    field(block, 'type') === 'text' && textField(block, 'text') === '';
  if (listField(json, 'system').some(isEmpty)) {
    return shape('', 'system: text content blocks must be non-empty');
  }
  const messages = listField(json, 'messages');
  if (!messages.some((message) => blocksOf(message).some(isEmpty))) return undefined;
  return shape('', 'messages: text content blocks must be non-empty');
}

/**
 * The results of all calls are in the next message, before every other block of it ("handle tool calls":
 * text goes after all tool results; the words are those of the public API).
 */
function calls({ json }: ModelRequest): Refusal | undefined {
  const turns = turnsOf(json);
  for (const [at, { path, blocks }] of turns.entries()) {
    const next = turns[at + 1];
    if (next === undefined) return undefined;
    const answered = leadingResults(next);
    const open = idsOf(blocks, 'tool_use', 'id').filter((id) => !answered.includes(id));
    if (open.length === 0) continue;
    return shape(
      path,
      `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    );
  }
  return undefined;
}

function results({ json }: ModelRequest): Refusal | undefined {
  const turns = turnsOf(json);
  for (const [at, { blocks }] of turns.entries()) {
    const called = idsOf(turns[at - 1]?.blocks ?? [], 'tool_use', 'id');
    for (const { block, path } of blocks) {
      const id = textField(block, 'tool_use_id');
      if (field(block, 'type') !== 'tool_result' || called.includes(id)) continue;
      return shape(
        path,
        `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    }
  }
  return undefined;
}

interface PlacedBlock {
  readonly block: unknown;
  readonly path: string;
}

/** Messages of one role that follow each other count as one (measured 2026-10-06). */
function turnsOf(json: unknown): readonly { path: string; role: unknown; blocks: PlacedBlock[] }[] {
  const turns: { path: string; role: unknown; blocks: PlacedBlock[] }[] = [];
  for (const [at, message] of listField(json, 'messages').entries()) {
    const role = field(message, 'role');
    if (role === 'system') continue;
    const path = `messages.${at}`;
    const blocks = blocksOf(message).map((block, index) => ({
      block,
      path: `${path}.content.${index}`,
    }));
    const last = turns.at(-1);
    if (last?.role === role) last?.blocks.push(...blocks);
    else turns.push({ path, role, blocks });
  }
  return turns;
}

function idsOf(blocks: readonly PlacedBlock[], type: string, name: string): readonly string[] {
  return blocks.flatMap(({ block }) =>
    field(block, 'type') === type ? [textField(block, name)] : [],
  );
}

function leadingResults({
  blocks,
}: {
  readonly blocks: readonly PlacedBlock[];
}): readonly string[] {
  const end = blocks.findIndex(({ block }) => field(block, 'type') !== 'tool_result');
  return idsOf(end === -1 ? blocks : blocks.slice(0, end), 'tool_result', 'tool_use_id');
}

/** Four marks at most (prompt-caching, 2026-08-22; the words are those of the public API). */
function cacheMarks({ json }: ModelRequest): Refusal | undefined {
  let found = 0;
  const count = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(count);
    if (!isObject(value)) return;
    if (value['cache_control'] !== undefined && value['cache_control'] !== null) found += 1;
    count(value['content']);
  };
  const { system, tools, messages } = isObject(json) ? json : {};
  [system, tools, messages].forEach(count);
  if (found <= 4) return undefined;
  return shape('', `A maximum of 4 blocks with cache_control may be provided. Found ${found}.`);
}

export const CONTEXT_BETA = 'context-management-2025-06-27';

/**
 * A parameter of the request, no part of the prefix. It needs its header; `clear_thinking` is first in the list
 * (context-editing, 2026-08-22). The types of the fields are those of the SDK (2026-09), the words are made up.
 */
function contextManagement({ json, betas }: ModelRequest): Refusal | undefined {
  const management = field(json, 'context_management');
  if (management === undefined || management === null) return undefined;
  if (!betas.includes(CONTEXT_BETA)) {
    return shape('context_management', 'Extra inputs are not permitted');
  }
  const edits = listField(management, 'edits');
  const badly = edits.findIndex((edit) => !isContextEdit(edit));
  if (badly !== -1) return shape(`context_management.edits.${badly}`, 'Input should be an edit');
  const types = edits.map((edit) => textField(edit, 'type'));
  if (new Set(types).size < types.length) {
    return shape('context_management.edits', 'each strategy may be given once');
  }
  if (types.indexOf('clear_thinking_20251015') <= 0) return undefined;
  return shape('context_management.edits', 'clear_thinking_20251015 must be the first edit');
}

const CLEARING_FIELDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: () => true,
  trigger: (value) => isAmount(value, ['input_tokens', 'tool_uses']),
  keep: (value) => isAmount(value, ['tool_uses']),
  clear_at_least: (value) => isAmount(value, ['input_tokens']),
  exclude_tools: (value) => Array.isArray(value) && value.every((it) => typeof it === 'string'),
  clear_tool_inputs: (value) => typeof value === 'boolean' || Array.isArray(value),
};

function isContextEdit(edit: unknown): boolean {
  const type = textField(edit, 'type');
  if (type === 'clear_thinking_20251015' || type === 'compact_20260112') return true;
  if (type !== 'clear_tool_uses_20250919' || !isObject(edit)) return false;
  return Object.entries(edit).every(([name, value]) => CLEARING_FIELDS[name]?.(value) === true);
}

function isAmount(value: unknown, types: readonly string[]): boolean {
  if (!isObject(value) || Object.keys(value).toSorted().join(',') !== 'type,value') return false;
  const isKnown = types.includes(textField(value, 'type'));
  return isKnown && Number.isInteger(value['value']) && Number(value['value']) >= 0;
}

function blocksOf(message: unknown): readonly unknown[] {
  const content = field(message, 'content');
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return Array.isArray(content) ? content : [];
}
