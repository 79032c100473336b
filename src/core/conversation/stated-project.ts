import { isWrapper } from './human-text.ts';

/**
 * Finds the project folder and the git branch that a client states in its own text.
 * The folder decides from which space memories are recalled, so the content of a file must not be able to name it. Of
 * user messages svc reads only the client's own blocks with the environment and the git status. In a system text the
 * first folder counts, because clients state theirs before the files that they quote. Only pi states its folder after
 * the files, so in its texts the last folder counts.
 */

export interface StatedProject {
  /** The folder that the texts state first. In pi's texts it is the last one; see isPiPrompt(). */
  readonly workingFolder?: string;
  /** The folder directly below a heading that ELEMENT matches. CONTRADICTED: two such folders differ. */
  readonly place?: string;
  /** True if the folder is from a block of the system prompt that SIMPLE matches. */
  readonly isBlock?: true;
  readonly branch?: string;
  /** The client that writes its environment in this form into a user message. */
  readonly statedBy?: string;
}

// How clients state their folder. Claude Code: "Primary working directory: /x". opencode: "Working directory: /x".
// Copilot CLI, and pi before 1.0: "Current working directory: /x". Later versions of pi: "<cwd>", and the folder on the
// next line. Cline: "Current Working Directory: /x", and in some of its prompts "4. Working Directory: /x" (3.0.65,
// recorded 2026-11-27). Gemini's family: "I'm currently working in the directory: /x". Codex: "<cwd>/x</cwd>".
const LABEL = /^[ \t]*(?:(?:[-*]|\d\.) )?(?:Primary |Current )?[Ww]$/;
const FOLDER_MARKS: readonly Mark[] = [
  ['orking directory: ', LABEL],
  ['orking Directory: ', LABEL],
  ['orking in the directory: ', /^[ \t]*(?:[-*] )?I'm currently w$/],
  ['<cwd>', /^[ \t]*(?:<environment_context>)?$/],
];
/** Roo Code's form. It counts only below the heading of Roo Code's own part (its getSystemInfoSection(), 2026-11). */
const PLACE_MARKS: readonly Mark[] = [['orkspace Directory: ', /^Current W$/]];
const BRANCH_MARKS: readonly Mark[] = ['Current branch: ', 'Git branch: ', 'git branch: '].map(
  (mark) => [mark, /^[ \t]*(?:[-*] )?(?:gitStatus: )?$/],
);

/** A fixed text before a value, and a pattern for everything before that text on its line. */
type Mark = readonly [text: string, before: RegExp];

/** Bound on a folder or a branch, in characters: the longest path that Linux accepts. */
const VALUE_CHARS_MAX = 4096;
/** Bound on the occurrences of a mark that are read in one text. A text with more describes no environment. */
const MARKS_MAX = 1024;

/**
 * Says whether a system prompt begins as pi's: "operating inside pi" before version 1.0, then "running inside pi". pi
 * states its folder after the project files that it quotes; the other known clients state it before them.
 */
export function isPiPrompt(text: string): boolean {
  return text.slice(0, HEAD_CHARS).includes('inside pi, a coding agent harness');
}

/** Characters at the beginning of a prompt in which isPiPrompt() searches. */
const HEAD_CHARS = 400;

/**
 * The value of a folder if texts name different folders. One of them may come from a file that imitates the client's
 * form, so svc cannot know which is right.
 */
export const CONTRADICTED = '';

/** Finds the project in the texts of a system message or of the system prompt. */
export function projectInSystem(texts: readonly string[]): StatedProject {
  const isPi = texts.some(isPiPrompt);
  const folders = texts.flatMap((text) => foldersIn(text, isPi ? PI_MARKS : SYSTEM_MARKS));
  const places = [...folders, ...texts.flatMap((text) => foldersIn(text, PLACE_MARKS))];
  const place = agreedOn(places.flatMap(({ value, isInElement }) => (isInElement ? value : [])));
  return {
    ...stated((isPi ? folders.at(-1) : folders[0])?.value, branchesIn(texts)),
    ...(place !== undefined && { place }),
  };
}

function agreedOn(folders: readonly string[]): string | undefined {
  const [first] = folders;
  return folders.every((folder) => folder === first) ? first : CONTRADICTED;
}

// Codex writes `<cwd>` only in a user message.
const SYSTEM_MARKS = FOLDER_MARKS.filter(([text]) => text !== '<cwd>');

/** Returns the folder in the `<cwd>` element that ends pi's system prompt, even if the user replaced its beginning. */
export function folderAtEnd(texts: readonly string[]): string | undefined {
  const text = texts.at(-1)?.trimEnd() ?? '';
  const at = text.lastIndexOf(PI_ELEMENT);
  const folder = at === -1 ? '' : text.slice(at + PI_ELEMENT.length);
  return /^(?:\/|[A-Za-z]:\/)[^\n<]{0,4095}\n<\/cwd>$/.test(folder) ? firstLine(folder) : undefined;
}

const PI_ELEMENT = '\n\n<cwd>\n';
const PI_MARKS: readonly Mark[] = [...SYSTEM_MARKS, ['<cwd>\n', /^$/]];

/** Matches the beginning of a system message's part that describes the environment. */
const ELEMENT =
  /(?:^|\n)(?:# Environment\n(?:You have been invoked in the following environment: *\n)?|<env>\n|<environment>\n|====\n\nSYSTEM INFORMATION\n\nOperating System: .{0,200}\n(?:Default Shell: .{0,200}\n)?Home Directory: .{0,400}\n)$/;
/**
 * Characters before a folder's line in which ELEMENT is searched for. The longest match is Roo Code's heading with
 * three lines.
 */
const ELEMENT_CHARS_MAX = 1000;

/**
 * Finds the project in the blocks of the system prompt. In Claude Code's simple mode a block begins with the folder and
 * the day, and no other block names a folder. svc trusts that block: only the client decides how a block begins.
 */
export function projectInPrompt(texts: readonly string[]): StatedProject {
  const folder = agreedOn(texts.flatMap((text) => SIMPLE.exec(text)?.[1] ?? []));
  if (folder === undefined) return projectInSystem(texts);
  return { ...stated(folder, branchesIn(texts)), isBlock: true };
}

const SIMPLE = /^CWD: ((?:\/|[A-Za-z]:[\\/]|\\\\)[^\n]{0,4095})\nDate: \d{4}-\d{2}-\d{2}(?:\n|$)/;

export const NOTHING_STATED: StatedProject = {};

/** Finds the project in a user message. It reads only the client's own blocks; see isWrapper. */
export function projectInUser(texts: readonly string[]): StatedProject {
  const wrappers = texts.filter(
    (text) => (text.trimStart().startsWith('<') || writerOf(text) !== undefined) && isWrapper(text),
  );
  if (wrappers.length === 0) return NOTHING_STATED;
  const environment = wrappers.find((text) => writerOf(text) !== undefined);
  const status = wrappers.filter(isGitStatus);
  const own = environment === undefined ? [] : [environment];
  const folder = own.flatMap((text) => foldersIn(text, FOLDER_MARKS))[0]?.value;
  const statedBy = folder === undefined ? undefined : writerOf(environment ?? '');
  return {
    ...stated(folder, branchesIn([...own, ...status])),
    ...(statedBy !== undefined && { statedBy }),
  };
}

/** The beginning of a user message's block that describes the environment, and the client that writes such a block. */
const WRITERS: readonly (readonly [starts: RegExp, client: string])[] = [
  [/^\s*<environment_context[\s>]/, 'codex'],
  [/^\s*<system-reminder>\s*# Environment\n/, 'claude-code'],
  // Qwen Code 0.15.10 writes the text without <system-reminder>: npm installs that version on Node 20 (2026-11-29).
  [/^\s*(?:<system-reminder>\s*)?This is the Qwen Code\b/, 'qwen'],
];

function writerOf(text: string): string | undefined {
  const head = text.slice(0, 200);
  return WRITERS.find(([starts]) => starts.test(head))?.[1];
}

// Says whether a block has Claude Code's git status, which names the branch. Looks for the heading only at the block's
// beginning, because the text of a project file may follow.
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

interface Folder {
  readonly value: string;
  readonly isInElement: boolean;
}

/** Finds the folders that a text states, in the order of the text. */
function foldersIn(text: string, marks: readonly Mark[]): readonly Folder[] {
  return marks
    .flatMap((mark) => valuesAfter(mark, text))
    .filter(({ value }) => /^(?:\/|~\/|[A-Za-z]:[\\/]|\\\\)/.test(value))
    .toSorted((a, b) => a.line - b.line)
    .map(({ line, value }) => ({
      value,
      isInElement: ELEMENT.test(text.slice(Math.max(0, line - ELEMENT_CHARS_MAX), line)),
    }));
}

function branchesIn(texts: readonly string[]): ReadonlySet<string> {
  const values = BRANCH_MARKS.flatMap((mark) => texts.flatMap((text) => valuesAfter(mark, text)));
  return new Set(
    values.map(({ value }) => value).filter((value) => /^[^\s<>]{1,255}$/.test(value)),
  );
}

interface Value {
  /** The index at which the value's line begins. */
  readonly line: number;
  readonly value: string;
}

/** Bound on the indentation and label before a mark, in characters. No client writes more. */
const BEFORE_CHARS_MAX = 64;

function valuesAfter([mark, before]: Mark, text: string): readonly Value[] {
  const values: Value[] = [];
  let at = text.indexOf(mark);
  for (let seen = 0; at !== -1 && seen < MARKS_MAX; seen += 1) {
    const start = at + mark.length;
    const from = Math.max(0, at - BEFORE_CHARS_MAX);
    const line = text.slice(from, at).lastIndexOf('\n') + 1 + from;
    const isWhole = line > from || from === 0;
    if (isWhole && before.test(text.slice(line, at))) {
      values.push({ line, value: firstLine(text.slice(start, start + VALUE_CHARS_MAX)) });
    }
    at = text.indexOf(mark, start);
  }
  return values;
}

/** Returns the value up to the end of the line, or to a `<`, which begins a closing tag. A value may hold spaces. */
function firstLine(text: string): string {
  const end = text.search(/[\r\n<]/);
  return (end === -1 ? text : text.slice(0, end)).trim();
}
