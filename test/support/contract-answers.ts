import type { ValidateFunction } from 'ajv/dist/2020.js';
import { contract, schemaOf } from './memory-api.ts';

/** Holds every answer of a service against the published contract: status, schema, content type. */

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

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The contract's own test shows that it has this form.
const { paths, components } = contract as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Response>> };
};

/** Refusals that any path may give, also one that is on no route. */
const ANYWHERE = new Set([401, 404, 405, 415, 422, 429, 500, 503]);

const validators = new Map<string, ValidateFunction>();

/** Undefined when the contract knows the answer; else what is wrong with it. */
export function contractProblem({ method, path, status, headers, json }: Told): string | undefined {
  const bare = path.split('?')[0] ?? '';
  const name = Object.keys(paths).find((known) => patternOf(known).test(bare));
  const response = paths[name ?? '']?.[method.toLowerCase()]?.responses[String(status)];
  if (response === undefined) {
    if (!ANYWHERE.has(status)) return `${method} ${bare} may not answer ${status}`;
    return problemOf('Error', json, `${method} ${bare} ${status}`);
  }
  const pointer =
    response.$ref?.slice(1) ??
    `/paths/${escaped(name ?? '')}/${method.toLowerCase()}/responses/${status}`;
  const content =
    response.content ?? components.responses[pointer.split('/').at(-1) ?? '']?.content ?? {};
  const [type = ''] = Object.keys(content);
  if (!String(headers['content-type']).startsWith(type))
    return `${bare}: content type is not ${type}`;
  if (type !== 'application/json') return undefined;
  return problemOf(
    `${pointer}/content/${escaped(type)}/schema`,
    json,
    `${method} ${bare} ${status}`,
  );
}

function problemOf(schema: string, json: unknown, what: string): string | undefined {
  const validate = validators.get(schema) ?? schemaOf(schema);
  validators.set(schema, validate);
  return validate(json) ? undefined : `${what}: ${JSON.stringify(validate.errors)}`;
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}

function escaped(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1');
}
