import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/**
 * One call of a real SDK, in a process of its own, on the Node version that the SDKs ask for:
 * `node sdk-session.ts '<SdkCall as JSON>'` prints `{ "text": … }`. Imports nothing of the project.
 */
export interface SdkCall {
  readonly sdk: SdkName;
  readonly isStreamed: boolean;
  /** Holds the SDKs' node_modules. */
  readonly folder: string;
  /** Without /v1. */
  readonly baseUrl: string;
  readonly token: string;
  readonly prompt: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type SdkName =
  | 'openai-chat'
  | 'openai-responses'
  | 'openai-models'
  | 'anthropic'
  | 'anthropic-count'
  | 'anthropic-models'
  | 'ai-anthropic'
  | 'ai-openai-responses'
  | 'ai-openai-chat';

// The SDKs are not dependencies of the project: these are the few shapes that are used here.
interface Client {
  readonly chat: { readonly completions: { create(body: object): Promise<unknown> } };
  readonly responses: { create(body: object): Promise<unknown> };
  readonly models: { list(): AsyncIterable<{ readonly id: string }> };
  readonly messages: {
    create(body: object): Promise<unknown>;
    stream(body: object): { finalMessage(): Promise<unknown> };
    countTokens(body: object): Promise<{ readonly input_tokens: number }>;
  };
}
type ClientClass = new (options: object) => Client;
type ModelMaker = ((model: string) => object) & { chat(model: string): object };
interface AiSdk {
  generateText(options: object): Promise<{ readonly text: string }>;
  streamText(options: object): { readonly textStream: AsyncIterable<string> };
  tool(definition: object): object;
  jsonSchema(schema: object): object;
  readonly isStepCount?: (count: number) => object;
  readonly stepCountIs?: (count: number) => object;
}

// More than any scripted plan has steps.
const STEPS_MAX = 40;
const CLAUDE = 'claude-sonnet-4-5';

const call = JSON.parse(process.argv[2] ?? '{}') as SdkCall;
process.stdout.write(`${JSON.stringify({ text: await makeCall() })}\n`);

async function makeCall(): Promise<string> {
  switch (call.sdk) {
    case 'openai-chat':
      return call.isStreamed ? chatStream() : chat();
    case 'openai-responses':
      return call.isStreamed ? responsesStream() : responses();
    case 'openai-models':
      return modelIds(await openai());
    case 'anthropic':
      return messages();
    case 'anthropic-count':
      return countTokens();
    case 'anthropic-models':
      return modelIds(await anthropic());
    case 'ai-anthropic':
      return agentLoop(
        await aiModel('@ai-sdk/anthropic', 'createAnthropic', (make) => make(CLAUDE)),
      );
    case 'ai-openai-responses':
      return agentLoop(await aiModel('@ai-sdk/openai', 'createOpenAI', (make) => make('gpt-5')));
    case 'ai-openai-chat':
      return agentLoop(
        await aiModel('@ai-sdk/openai', 'createOpenAI', (make) => make.chat('gpt-5')),
      );
  }
}

async function chat(): Promise<string> {
  const { completions } = (await openai()).chat;
  const answer = (await completions.create({ model: 'gpt-5', messages: asUser() })) as {
    choices: { message: { content: string } }[];
  };
  return answer.choices[0]?.message.content ?? '';
}

async function chatStream(): Promise<string> {
  const { completions } = (await openai()).chat;
  const body = { model: 'gpt-5', stream: true, messages: asUser() };
  const chunks = (await completions.create(body)) as AsyncIterable<{
    choices: { delta?: { content?: string } }[];
  }>;
  let text = '';
  for await (const chunk of chunks) text += chunk.choices[0]?.delta?.content ?? '';
  return text;
}

/** With a plain string as input: the other form of this dialect. */
async function responses(): Promise<string> {
  const client = await openai();
  const answer = await client.responses.create({ model: 'gpt-5', input: call.prompt });
  return (answer as { output_text: string }).output_text;
}

async function responsesStream(): Promise<string> {
  const client = await openai();
  const body = { model: 'gpt-5', stream: true, input: asUser() };
  const events = (await client.responses.create(body)) as AsyncIterable<{
    type: string;
    delta?: string;
  }>;
  let text = '';
  for await (const { type, delta } of events) {
    if (type === 'response.output_text.delta') text += delta ?? '';
  }
  return text;
}

async function messages(): Promise<string> {
  const client = await anthropic();
  const body = { model: CLAUDE, max_tokens: 2000, messages: asUser() };
  const thinking = { type: 'enabled', budget_tokens: 1024 };
  const message = call.isStreamed
    ? await client.messages.stream({ ...body, thinking }).finalMessage()
    : await client.messages.create(body);
  return (message as { content: { text?: string }[] }).content.at(-1)?.text ?? '';
}

async function countTokens(): Promise<string> {
  const client = await anthropic();
  const { input_tokens } = await client.messages.countTokens({ model: CLAUDE, messages: asUser() });
  return String(input_tokens);
}

async function modelIds(client: Client): Promise<string> {
  const ids: string[] = [];
  for await (const { id } of client.models.list()) ids.push(id);
  return ids.join();
}

/** The tools run here: the SDK itself goes round until the model has its last answer. */
async function agentLoop(model: object): Promise<string> {
  const ai = await load<AiSdk>('ai');
  const inputSchema = ai.jsonSchema({
    type: 'object',
    properties: { command: { type: 'string' } },
    required: ['command'],
  });
  const execute = async ({ command }: { command: string }) => `ran ${command}`;
  const options = {
    model,
    prompt: call.prompt,
    tools: { bash: ai.tool({ description: 'run a command', inputSchema, execute }) },
    stopWhen: (ai.stepCountIs ?? ai.isStepCount)?.(STEPS_MAX),
  };
  if (!call.isStreamed) return (await ai.generateText(options)).text;
  let text = '';
  for await (const piece of ai.streamText(options).textStream) text += piece;
  return text;
}

function asUser(): readonly object[] {
  return [{ role: 'user', content: call.prompt }];
}

async function openai(): Promise<Client> {
  const { default: OpenAI } = await load<{ default: ClientClass }>('openai');
  return new OpenAI({ ...sdkOptions(`${call.baseUrl}/v1`), defaultHeaders: call.headers });
}

async function anthropic(): Promise<Client> {
  const { default: Anthropic } = await load<{ default: ClientClass }>('@anthropic-ai/sdk');
  return new Anthropic({ ...sdkOptions(call.baseUrl), defaultHeaders: call.headers });
}

async function aiModel(
  packageName: string,
  maker: string,
  pick: (make: ModelMaker) => object,
): Promise<object> {
  const provider = await load<Record<string, (options: object) => ModelMaker>>(packageName);
  const make = provider[maker]?.({ ...sdkOptions(`${call.baseUrl}/v1`), headers: call.headers });
  if (make === undefined) throw new Error(`${packageName} has no ${maker}`);
  return pick(make);
}

function sdkOptions(baseURL: string): object {
  return { baseURL, apiKey: call.token };
}

async function load<Module>(packageName: string): Promise<Module> {
  const require = createRequire(`${call.folder}/package.json`);
  return (await import(pathToFileURL(require.resolve(packageName)).href)) as Module;
}
