import type { ValidateFunction } from 'ajv/dist/2020.js';
import {
  consoleContract,
  contract,
  type ContractName,
  schemaOf,
} from '../../../test/support/memory-api.ts';

/** Holds every answer of a service against the published contracts: status, schema, content type. */

interface Told {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly json: unknown;
}

interface Header {
  readonly $ref?: string;
  readonly required?: boolean;
}

interface Response {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, unknown>>;
}

interface Operation {
  readonly responses: Readonly<Record<string, Response>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly responses: Readonly<Record<string, Response>>;
    readonly headers: Readonly<Record<string, Header>>;
  };
}

// The contracts' own tests show that they have this form.
const DOCUMENTS = { api: contract, console: consoleContract } as Readonly<
  Record<ContractName, Document>
>;

/** Refusals that any path may give, also one that is on no route. */
const ANYWHERE = new Set([401, 404, 405, 415, 422, 429, 500, 503]);

/** Paths whose bodies are those of a provider, or in the shape of its errors. */
const MODEL_PATH = /^\/v1\/(?:chat\/completions|responses|messages|models)(?:\/|$)/;
const CONSOLE_PATH = /^\/(?:v1\/svc\/(?:console|requests)|\.well-known)(?:\/|$)/;

const validators = new Map<string, ValidateFunction>();

/** Undefined when the contract knows the answer; else what is wrong with it. */
export function contractProblem(told: Told): string | undefined {
  const { method, path, status, text, json, headers } = told;
  const bare = path.split('?')[0] ?? '';
  const isModel = MODEL_PATH.test(bare);
  const document: ContractName = isModel || CONSOLE_PATH.test(bare) ? 'console' : 'api';
  const { paths, components } = DOCUMENTS[document];
  const name = Object.keys(paths).find((known) => patternOf(known).test(bare)) ?? '';
  const responses = paths[name]?.[method.toLowerCase()]?.responses ?? {};
  const key = [String(status), `${Math.floor(status / 100)}XX`].find((one) => one in responses);
  const what = `${method} ${bare} ${status}`;
  if (key === undefined) {
    if (!ANYWHERE.has(status)) return `${method} ${bare} may not answer ${status}`;
    return problemOf({ document, schema: isModel ? 'EitherError' : 'Error' }, json, what);
  }
  const pointer =
    responses[key]?.$ref?.slice(1) ??
    `/paths/${escaped(name)}/${method.toLowerCase()}/responses/${key}`;
  const shared = components.responses[pointer.split('/').at(-1) ?? ''];
  const response = { ...shared, ...responses[key] };
  const problem = isModel ? headerProblem(told, response, components.headers) : undefined;
  if (problem !== undefined) return `${what}: ${problem}`;
  // The bytes of a provider are its own.
  const isOwn = bare.startsWith('/v1/models') || headers['x-svc-error-source'] === 'service';
  if (isModel && !isOwn) return undefined;
  const [type = ''] = Object.keys(response.content ?? {});
  if (type === '') return text === '' ? undefined : `${bare}: an answer without content has some`;
  if (!String(headers['content-type']).startsWith(type))
    return `${bare}: content type is not ${type}`;
  if (type !== 'application/json') return undefined;
  return problemOf({ document, schema: `${pointer}/content/${escaped(type)}/schema` }, json, what);
}

/** Every `x-svc-*` header is told of, those that are promised are there, and each has its form. */
function headerProblem(
  { headers }: Told,
  { headers: known = {} }: Response,
  components: Readonly<Record<string, Header>>,
): string | undefined {
  const strange = Object.keys(headers).find(
    (name) => name.startsWith('x-svc-') && !(name in known),
  );
  if (strange !== undefined) return `the header ${strange} is not in the document`;
  for (const [name, { $ref = '' }] of Object.entries(known)) {
    const component = $ref.split('/').at(-1) ?? '';
    const value = headers[name];
    if (value === undefined) {
      if (components[component]?.required === true) return `the header ${name} is missing`;
      continue;
    }
    const place = {
      document: 'console',
      schema: `/components/headers/${component}/schema`,
    } as const;
    const problem = problemOf(place, value, name);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

interface Named {
  readonly document: ContractName;
  readonly schema: string;
}

function problemOf({ document, schema }: Named, json: unknown, what: string): string | undefined {
  const name = `${document} ${schema}`;
  const validate = validators.get(name) ?? schemaOf(schema, document);
  validators.set(name, validate);
  return validate(json) ? undefined : `${what}: ${JSON.stringify(validate.errors)}`;
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}

function escaped(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1');
}
