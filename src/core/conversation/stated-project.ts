import { isWrapper } from './human-text.ts';

/**
 * Finds the project folder and the git branch that a client states in its own text.
 *
 * The folder picks the space whose memories are recalled, so the content of a file must not be able
 * to name it. Only the client's own environment text is read, and in it only the client's own place.
 */

export interface StatedProject {
  readonly workingFolder?: string;
  readonly branch?: string;
  /** The client that writes this form of environment into a user message. */
  readonly statedBy?: string;
}

// Claude Code: "Primary working directory: /x". opencode: "Working directory: /x". pi, Copilot CLI:
// "Current working directory: /x". Cline: "Current Working Directory: /x". Gemini's family:
// "I'm currently working in the directory: /x". Codex: "<cwd>/x</cwd>".
const FOLDER_MARKS = [
  'orking directory: ',
  'orking Directory: ',
  'orking in the directory: ',
  '<cwd>',
] as const;
const BRANCH_MARKS = ['Current branch: ', 'Git branch: ', 'git branch: '] as const;

/** Longest path that Linux accepts; also far beyond any branch name. */
const VALUE_CHARS_MAX = 4096;
/** A text that repeats a mark more often is not an environment: reading it on would be wasted. */
const MARKS_MAX = 64;

// pi appends its folder to the files of the project that it quotes; every other client states it first.
const STATES_LAST = 'operating inside pi, a coding agent harness';
const HEAD_CHARS = 400;

/**
 * `texts`: a system message's, or the system prompt's. When they name several folders, the client's
 * own place counts.
 */
export function projectInSystem(texts: readonly string[]): StatedProject {
  const folders = foldersIn(texts);
  const isLast = texts.some((text) => text.slice(0, HEAD_CHARS).includes(STATES_LAST));
  return stated(isLast ? folders.at(-1) : folders[0], branchesIn(texts));
}

/**
 * `texts`: the blocks of the system prompt itself. Claude Code's simple mode has a block there that says the
 * folder and the day, and nothing else names one. As a whole block it is the client's own place.
 */
export function projectInPrompt(texts: readonly string[]): StatedProject {
  const project = projectInSystem(texts);
  const [folder] = texts.flatMap((text) => SIMPLE.exec(text)?.[1] ?? []);
  return folder === undefined ? project : { ...project, workingFolder: folder };
}

const SIMPLE = /^CWD: ((?:\/|[A-Za-z]:[\\/]|\\\\)[^\n]{0,4095})\nDate: \d{4}-\d{2}-\d{2}(?:\n|$)/;

const NOTHING_STATED: StatedProject = {};

/** `texts`: a user message's. Only wrappers that describe the environment are read. */
export function projectInUser(texts: readonly string[]): StatedProject {
  const wrappers = texts.filter((text) => text.trimStart().startsWith('<') && isWrapper(text));
  if (wrappers.length === 0) return NOTHING_STATED;
  const environment = wrappers.find((text) => writerOf(text) !== undefined);
  const status = wrappers.filter(isGitStatus);
  const own = environment === undefined ? [] : [environment];
  const [folder] = foldersIn(own);
  const statedBy = folder === undefined ? undefined : writerOf(environment ?? '');
  return {
    ...stated(folder, branchesIn([...own, ...status])),
    ...(statedBy !== undefined && { statedBy }),
  };
}

/** How clients begin the block of a user message in which they describe the environment. */
const WRITERS: readonly (readonly [starts: RegExp, client: string])[] = [
  [/^\s*<environment_context[\s>]/, 'codex'],
  [/^\s*<system-reminder>\s*# Environment\n/, 'claude-code'],
  [/^\s*<system-reminder>\s*This is the Qwen Code\b/, 'qwen'],
];

function writerOf(text: string): string | undefined {
  const head = text.slice(0, 200);
  return WRITERS.find(([starts]) => starts.test(head))?.[1];
}

// Claude Code says so at the top of the reminder; the text of a project's own file comes later.
function isGitStatus(text: string): boolean {
  return text.slice(0, 400).includes('# gitStatus');
}

function stated(folder: string | undefined, branches: ReadonlySet<string>): StatedProject {
  const [branch] = branches;
  return {
    ...(folder !== undefined && { workingFolder: folder }),
    ...(branch !== undefined && { branch }),
  };
}

/** In the order of the text. */
function foldersIn(texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) =>
    FOLDER_MARKS.flatMap((mark) => valuesAfter(mark, text))
      .filter(({ value }) => /^(?:\/|~\/|[A-Za-z]:[\\/]|\\\\)/.test(value))
      .toSorted((a, b) => a.at - b.at)
      .map(({ value }) => value),
  );
}

function branchesIn(texts: readonly string[]): ReadonlySet<string> {
  const values = BRANCH_MARKS.flatMap((mark) => texts.flatMap((text) => valuesAfter(mark, text)));
  return new Set(
    values.map(({ value }) => value).filter((value) => /^[^\s<>]{1,255}$/.test(value)),
  );
}

interface Value {
  readonly at: number;
  readonly value: string;
}

function valuesAfter(mark: string, text: string): readonly Value[] {
  const values: Value[] = [];
  let at = text.indexOf(mark);
  while (at !== -1 && values.length < MARKS_MAX) {
    const start = at + mark.length;
    values.push({ at, value: firstLine(text.slice(start, start + VALUE_CHARS_MAX)) });
    at = text.indexOf(mark, start);
  }
  return values;
}

/** Up to the end of the line or the tag that closes it. A path may hold spaces, not a `<`. */
function firstLine(text: string): string {
  const end = text.search(/[\r\n<]/);
  return (end === -1 ? text : text.slice(0, end)).trim();
}
