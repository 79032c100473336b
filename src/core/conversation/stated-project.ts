import { isWrapper } from './human-text.ts';

/**
 * Finds the project folder and the git branch that a client states in its own text.
 *
 * The folder picks the space whose memories are recalled, so a file's content must not be able to
 * name it: only the client's own environment text is read, and a text that names two folders
 * names none.
 */

export interface StatedProject {
  readonly workingFolder?: string;
  readonly branch?: string;
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

/** `texts`: a system message's, or the system prompt's. */
export function projectInSystem(texts: readonly string[]): StatedProject {
  return stated(foldersIn(texts), branchesIn(texts));
}

/** `texts`: a user message's. Only wrappers that describe the environment are read. */
export function projectInUser(texts: readonly string[]): StatedProject {
  const wrappers = texts.filter((text) => text.trimStart().startsWith('<') && isWrapper(text));
  const environment = wrappers.filter(isEnvironment);
  const status = wrappers.filter(isGitStatus);
  return stated(foldersIn(environment), branchesIn([...environment, ...status]));
}

function isEnvironment(text: string): boolean {
  return /^\s*<(?:environment_context[\s>]|system-reminder>\s*(?:# Environment\n|This is the ))/.test(
    text.slice(0, 200),
  );
}

// Claude Code says so at the top of the reminder; the text of a project's own file comes later.
function isGitStatus(text: string): boolean {
  return text.slice(0, 400).includes('# gitStatus');
}

function stated(folders: ReadonlySet<string>, branches: ReadonlySet<string>): StatedProject {
  const [workingFolder] = folders;
  const [branch] = branches;
  return {
    ...(folders.size === 1 && workingFolder !== undefined && { workingFolder }),
    ...(branch !== undefined && { branch }),
  };
}

function foldersIn(texts: readonly string[]): ReadonlySet<string> {
  const values = FOLDER_MARKS.flatMap((mark) => valuesAfter(mark, texts));
  return new Set(values.filter((value) => /^(?:\/|~\/|[A-Za-z]:[\\/]|\\\\)/.test(value)));
}

function branchesIn(texts: readonly string[]): ReadonlySet<string> {
  const values = BRANCH_MARKS.flatMap((mark) => valuesAfter(mark, texts));
  return new Set(values.filter((value) => /^[^\s<>]{1,255}$/.test(value)));
}

function valuesAfter(mark: string, texts: readonly string[]): string[] {
  const values: string[] = [];
  for (const text of texts) {
    let at = text.indexOf(mark);
    while (at !== -1 && values.length < MARKS_MAX) {
      const start = at + mark.length;
      values.push(firstLine(text.slice(start, start + VALUE_CHARS_MAX)));
      at = text.indexOf(mark, start);
    }
  }
  return values;
}

/** Up to the end of the line or the tag that closes it. A path may hold spaces, not a `<`. */
function firstLine(text: string): string {
  const end = text.search(/[\r\n<]/);
  return (end === -1 ? text : text.slice(0, end)).trim();
}
