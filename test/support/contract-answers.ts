import type { ValidateFunction } from 'ajv/dist/2020.js';
import { consoleContract, contract, type ContractName, schemaOf } from './memory-api.ts';

/** Holds every answer of a service against the published contracts: status, schema, content type. */

interface Told {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly json: unknown;
}

interface Response {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, unknown>>;
}

interface Operation {
  readonly responses: Readonly<Record<string, Response>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Response>> };
}

// The contracts' own tests show that they have this form.
const DOCUMENTS = { api: contract, console: consoleContract } as Readonly<
  Record<ContractName, Document>
>;

/** Refusals that any path may give, also one that is on no route. */
const ANYWHERE = new Set([401, 404, 405, 415, 422, 429, 500, 503]);

const validators = new Map<string, ValidateFunction>();

/** Undefined when the contract knows the answer; else what is wrong with it. */
export function contractProblem({
  method,
  path,
  status,
  headers,
  text,
  json,
}: Told): string | undefined {
  const bare = path.split('?')[0] ?? '';
  const document: ContractName = /^\/(?:v1\/svc\/(?:console|requests)|\.well-known)(?:\/|$)/.test(
    bare,
  )
    ? 'console'
    : 'api';
  const { paths, components } = DOCUMENTS[document];
  const name = Object.keys(paths).find((known) => patternOf(known).test(bare));
  const response = paths[name ?? '']?.[method.toLowerCase()]?.responses[String(status)];
  if (response === undefined) {
    if (!ANYWHERE.has(status)) return `${method} ${bare} may not answer ${status}`;
    return problemOf({ document, schema: 'Error' }, json, `${method} ${bare} ${status}`);
  }
  const pointer =
    response.$ref?.slice(1) ??
    `/paths/${escaped(name ?? '')}/${method.toLowerCase()}/responses/${status}`;
  const content =
    response.content ?? components.responses[pointer.split('/').at(-1) ?? '']?.content ?? {};
  const [type = ''] = Object.keys(content);
  if (type === '') return text === '' ? undefined : `${bare}: an answer without content has some`;
  if (!String(headers['content-type']).startsWith(type))
    return `${bare}: content type is not ${type}`;
  if (type !== 'application/json') return undefined;
  return problemOf(
    { document, schema: `${pointer}/content/${escaped(type)}/schema` },
    json,
    `${method} ${bare} ${status}`,
  );
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
