import type { Call } from '../context.ts';
import type { McpOptions } from '../memory/mcp.ts';
import type { CliCommand } from './command.ts';

/** `svc memory`: the commands with which a person looks into the memory and owns it, and the tools for a model. */

const LIST_OPTIONS = {
  '--space <name>': 'only this space',
  '--limit <number>': ['how many at most, up to 1000', '20'],
  '--json': 'print a JSON list',
} as const;

const LOOKING: readonly CliCommand[] = [
  {
    name: 'memory list',
    description: 'List memories, newest first',
    options: {
      '--stale': 'only those whose files have changed since, by project',
      ...LIST_OPTIONS,
    },
    more: `--stale lists a memory if a file that its exchange edited, or read and named, has changed or is gone. svc
compares only the files; it does not judge the text of the memory.`,
    examples: ['svc memory list --limit 5', 'svc memory list --stale --space shop'],
    run: async (call) =>
      'stale' in call.options
        ? (await import('../memory/memory-code.ts')).listStale(call)
        : (await import('../memory/memory.ts')).listMemories(call),
  },
  {
    name: 'memory search',
    description: 'Find memories by words, best first',
    args: { '<words...>': 'words of the memory' },
    options: LIST_OPTIONS,
    examples: ['svc memory search staging database'],
    run: async (call) => (await import('../memory/memory.ts')).listMemories(call),
  },
  {
    name: 'memory get',
    description: 'Print the exact text of a memory, or its origin',
    args: { '<ref>': 'its reference, from list, search or a recalled block' },
    options: {
      '--origin': 'print where it comes from, and whether its files have changed, instead',
      '--lines <from-to>': 'only these lines, counted from 1',
      '--grep <pattern>': 'only lines that match, with their numbers',
      '--context <lines>': ['with --grep: lines around each match, up to 50', '2'],
      '--around <name>': 'only the function, class or heading of this name',
      '--all': 'the whole text',
      '--json': 'print the whole record',
    },
    more: `The text on stdout is exact, and has at most 1,500 tokens. If it is only a part, stderr says how to get the
rest.`,
    examples: [
      'svc memory get m_… --lines 1-200',
      "svc memory get m_… --grep 'export (class|function)' --context 5",
      'svc memory get m_… --around parseConfig',
      'svc memory get m_… --all > text.txt',
      'svc memory get m_… --origin',
    ],
    run: async (call) => (await import('../memory/memory.ts')).getMemory(call),
  },
  {
    name: 'memory why',
    description: 'Say what recall weighs for a prompt, and why each memory is told or not',
    args: { '<prompt>': 'the words of a person' },
    options: {
      '--space <name>': 'in this space; without it, for the project of this folder',
      '--json': 'print one JSON object',
    },
    examples: ['svc memory why "why does the parser drop the last chunk?"'],
    run: async (call) => (await import('../memory/memory-why.ts')).explainRecall(call),
  },
  {
    name: 'memory rules',
    description: 'List the rules and corrections that you stated; pin, edit or retire one',
    args: { '[sentence...]': 'with --edit: the new sentence' },
    options: {
      '--space <name>': 'only this space',
      '--all': 'also the rules that were replaced or retired',
      '--retire <id>': 'never place this rule again',
      '--restore <id>': 'take back --retire or --pin',
      '--pin <id>': 'place this rule in every conversation of its project',
      '--edit <id>': 'retire this rule and state another one in its place',
      '--json': 'print a JSON list',
    },
    more: `svc finds a rule in what you say: "from now on …", "no, we use pnpm here", "never touch generated files".
A later sentence about the same thing replaces it. svc places a rule when a prompt falls under it.`,
    examples: [
      'svc memory rules',
      'svc memory rules --retire r_…',
      'svc memory rules --edit r_… "Always use pnpm here."',
    ],
    run: async (call) => (await import('../memory/memory-rules.ts')).showRules(call),
  },
];

const OWNING: readonly CliCommand[] = [
  {
    name: 'memory forget',
    description: 'Forget memories permanently; svc does not capture them again',
    args: { '[refs...]': 'references of the memories' },
    options: {
      '--search <words>': 'all memories that match these words',
      '--space <name>': 'only this space; without other arguments: all of its memories',
      '-y, --yes': 'do not ask; required without a terminal',
      '--json': 'print the count as JSON',
    },
    more: `If several projects hold the same text, the command forgets it in the project of the current folder and
names the others.`,
    examples: [
      'svc memory forget m_…',
      'svc memory forget m_… --space shop',
      'svc memory forget --search "old host" --yes',
    ],
    run: async (call) => (await import('../memory/memory.ts')).forgetMemories(call),
  },
  {
    name: 'memory add',
    description: 'Store a statement as a memory, for the project of this folder or for all',
    args: { '<words...>': 'the statement' },
    options: {
      '--space <name>': 'another space; "global" is recalled in every project',
      '--json': 'print its reference and space as JSON',
    },
    examples: ['svc memory add --space global "I write dates as ISO 8601."'],
    run: async (call) => (await import('../memory/memory-add.ts')).addMemory(call),
  },
  {
    name: 'memory move',
    description: 'Move memories to another space',
    args: { '<refs...>': 'references of the memories' },
    options: {
      '--to <name>': 'the new space; "global" is recalled in every project',
      '--space <name>': 'their present space, if several spaces have them',
      '--json': 'print the count as JSON',
    },
    examples: ['svc memory move m_… --to global'],
    run: async (call) => (await import('../memory/memory-add.ts')).moveMemories(call),
  },
  {
    name: 'memory export',
    description:
      "Print all memories as lines of JSON, or a project's rules for CLAUDE.md or AGENTS.md",
    options: {
      '--space <name>': 'only this space',
      '--as <form>': 'the rules of this project as Markdown: claude or agents',
    },
    examples: ['svc memory export > memories.jsonl', 'svc memory export --as claude >> CLAUDE.md'],
    run: async (call) => (await import('../memory/memory-export.ts')).exportMemories(call),
  },
  {
    name: 'memory import',
    description: 'Import an export, or the transcripts that a client keeps on this machine',
    args: { '[file]': 'lines of JSON from export; without a file, or with "-", standard input' },
    options: {
      '--from <client>':
        'the sessions of claude-code, codex, opencode, copilot, pi, qwen, gemini, continue or cline; without --yes only count',
      '--space <name>': 'import everything into this space',
      '-y, --yes': 'with --from: write the memories',
      '--dry-run': 'count and write nothing',
      '--json': 'print the counts as JSON',
    },
    examples: [
      'svc memory import --from claude-code',
      'svc memory import --from claude-code --yes',
    ],
    run: async (call) => (await import('../memory/memory-import.ts')).importMemories(call),
  },
  {
    name: 'memory share',
    description: 'Write rules and memories of this project into .svc/memory.md, for colleagues',
    args: { '[refs...]': 'memories (m_…) and rules (r_…); without any, all rules that hold' },
    options: {
      '--remove <id...>': 'take these entries (s_…) out of the file',
      '--json': 'print the counts as JSON',
    },
    more: 'The file is part of your repository. Review and commit it; a colleague reads it with: svc memory join',
    examples: ['svc memory share', 'svc memory share m_… r_…', 'svc memory share --remove s_…'],
    run: async (call) => (await import('../memory/memory-share.ts')).shareMemories(call),
  },
  {
    name: 'memory join',
    description: "Read the memories that colleagues share in this repository's .svc/memory.md",
    options: {
      '--accept': 'take them as your own without a question: rules hold',
      '-y, --yes': 'store them as unverified: they are recalled, and no rule holds',
      '--json': 'print the counts as JSON',
    },
    more: 'Nothing that you retired or forgot comes back, and no entry replaces a rule of yours.',
    examples: ['svc memory join', 'svc memory join --accept'],
    run: async (call) => (await import('../memory/memory-share.ts')).joinMemories(call),
  },
];

const SPACES: readonly CliCommand[] = [
  {
    name: 'memory spaces',
    description: 'List the spaces of the memory, with the folders of their projects',
    options: { '--json': 'print a JSON list' },
    run: async (call) => (await import('../memory/spaces.ts')).listSpaces(call),
  },
  ...(['rename', 'merge'] as const).map((verb): CliCommand => {
    const isMerge = verb === 'merge';
    return {
      name: `memory spaces ${verb}`,
      description: isMerge
        ? 'Move all memories and the project of one space into another'
        : 'Rename a space and assign its project to the new name',
      args: { '<from>': 'the space', '<to>': isMerge ? 'the other space' : 'the new name' },
      async run({ args: [from = '', to = ''], context }) {
        const { moveSpace } = await import('../memory/spaces.ts');
        await moveSpace({ from, to, isMerge }, context);
      },
    };
  }),
  {
    name: 'memory spaces join',
    description: 'Assign a folder to a space, if svc cannot prove that it is the same project',
    args: { '<space>': 'the space', '[folder]': 'the folder (default: the current one)' },
    run: async (call) => (await import('../memory/spaces.ts')).joinSpace(call),
  },
];

const SWITCHES = (['off', 'on'] as const).map((verb): CliCommand => {
  const isOff = verb === 'off';
  return {
    name: `memory ${verb}`,
    description: isOff
      ? 'Switch memory off for the project of this folder, until svc memory on'
      : 'Switch memory on again for the project of this folder',
    args: { '[folder]': 'another folder' },
    more: isOff
      ? `From the next request on, svc recalls nothing new in this project and stores nothing. Memories that a running
conversation contains stay in it where the model's thinking depends on them. svc status names the project.`
      : 'svc recalls and stores again from the next request on.',
    examples: [`svc memory ${verb}`],
    run: async (call) => (await import('../memory/spaces.ts')).switchMemory(call, isOff),
  };
});

const MCP: CliCommand = {
  name: 'mcp',
  group: 'programs',
  description: 'Serve the memory as tools for a model, over standard input and output (MCP)',
  options: {
    '--space <name>': ['a further space that a model may read; may be repeated', []],
    '--all-spaces': 'let a model read every space',
  },
  more: 'Without options, a model reads only the memory of its own project and the space global.',
  examples: ['claude mcp add svc -- svc mcp', 'codex mcp add svc -- svc mcp --space team/shared'],
  run: async (call: Call<McpOptions>) => (await import('../memory/mcp.ts')).serveMcp(call),
};

/** The options with which every command of the memory names a space. */
const SPACE_OPTIONS = ['space', 'to'] as const;

/** A person types the name of a project; the command gets its space. */
function withTypedSpaces(command: CliCommand): CliCommand {
  return {
    ...command,
    async run({ options, context, args }: Call<Readonly<Record<string, unknown>>>) {
      const read = { ...options };
      for (const name of SPACE_OPTIONS) {
        const typed = options[name];
        if (typeof typed !== 'string') continue;
        // oxlint-disable-next-line no-await-in-loop -- One or two.
        const { typedSpace } = await import('../memory/named.ts');
        // oxlint-disable-next-line no-await-in-loop -- One or two.
        read[name] = await typedSpace(typed, context);
      }
      return command.run?.({ options: read, context, args });
    },
  };
}

export const MEMORY_COMMANDS: readonly CliCommand[] = [
  { name: 'memory', group: 'daily', description: 'List, search, add and forget memories' },
  ...[...LOOKING, ...OWNING].map(withTypedSpaces),
  ...SWITCHES,
  ...SPACES,
  MCP,
];
