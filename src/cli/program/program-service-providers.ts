import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import type { ConsoleOptions } from '../service/console-access.ts';
import type { ProviderAddOptions, ProviderUpdateOptions } from '../service/service-providers.ts';
import { withConsoleOptions } from './console-options.ts';
import type { Finish } from './program.ts';

/** Declares the commands around the providers of a tenant. */
export function addProviderCommands(
  service: Command,
  context: CommandContext,
  finish: Finish,
): void {
  const providers = service
    .command('providers')
    .description('Providers of a tenant: an address, a credential in the vault, and models');
  addAdd(providers, context);
  addKept(providers, context);
  addProbes(providers, context, finish);
}

function addAdd(providers: Command, context: CommandContext): void {
  withProviderOptions(providers.command('add'))
    .description('Add a provider')
    .argument('<name>', '1 to 63 of a-z 0-9 and -')
    .option('--preset <id>', 'one of the catalog, which knows its address')
    .option('--base-url <url>', 'https, a public name, port 443 or 8443')
    .option('--api-style <style>', 'the API that it speaks')
    .option('--auth <how>', 'bearer, x-api-key or none; else as the API style has it')
    .addHelpText(
      'after',
      `
Examples:
  $ svc service providers add claude --preset anthropic --api-style anthropic_messages --model 'claude-*' \\
      --default-model claude-sonnet-4-5 --key-stdin < key.txt
  $ svc service providers add gateway --base-url https://models.example.com \\
      --api-style openai_responses --model gpt-5 --header 'x-team: api' --key-stdin < key.txt

A credential comes by stdin and goes to the vault. A header or query value may name it as $API_KEY and
is then a secret too.`,
    )
    .action(async (name: string, options: ProviderAddOptions) => {
      const { addProvider } = await import('../service/service-providers.ts');
      await addProvider(name, options, context);
    });
}

function addKept(providers: Command, context: CommandContext): void {
  withConsoleOptions(providers.command('list'))
    .description('List providers; of a credential its fingerprint and date')
    .addHelpText('after', '\nExamples:\n  $ svc service providers list')
    .action(async (options: ConsoleOptions) => {
      const { listProviders } = await import('../service/service-providers.ts');
      await listProviders(options, context);
    });
  withConsoleOptions(providers.command('show'))
    .description('Show one provider; never a secret')
    .argument('<name>', 'from the list')
    .addHelpText('after', '\nExamples:\n  $ svc service providers show claude')
    .action(async (name: string, options: ConsoleOptions) => {
      const { showProvider } = await import('../service/service-providers.ts');
      await showProvider(name, options, context);
    });
  withProviderOptions(providers.command('update'))
    .description('Change a provider; its address stays. What is not given stays too')
    .argument('<name>', 'from the list')
    .option('--rename <name>', 'another name')
    .option('--enable', 'use it')
    .option('--disable', 'keep it, and use it for nothing')
    .addHelpText(
      'after',
      `
Examples:
  $ svc service providers update claude --key-stdin < key.txt
  $ svc service providers update gateway --model gpt-5 gpt-5-mini`,
    )
    .action(async (name: string, options: ProviderUpdateOptions) => {
      const { updateProvider } = await import('../service/service-providers.ts');
      await updateProvider(name, options, context);
    });
  withConsoleOptions(providers.command('remove'))
    .description('Delete a provider and its secrets')
    .argument('<name>', 'from the list')
    .addHelpText('after', '\nExamples:\n  $ svc service providers remove gateway')
    .action(async (name: string, options: ConsoleOptions) => {
      const { removeProvider } = await import('../service/service-providers.ts');
      await removeProvider(name, options, context);
    });
}

function addProbes(providers: Command, context: CommandContext, finish: Finish): void {
  withConsoleOptions(providers.command('presets'))
    .description('List presets: providers of the public catalog, whose address is known')
    .argument('[text]', 'only those with it in their id or name')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc service providers presets\n  $ svc service providers presets mistral',
    )
    .action(async (text: string | undefined, options: ConsoleOptions) => {
      const { listPresets } = await import('../service/service-probes.ts');
      await listPresets(text, options, context);
    });
  withConsoleOptions(providers.command('models'))
    .description('Print the models that a custom provider lists; exit 1 when it gives no list')
    .argument('<name>', 'from the list')
    .addHelpText(
      'after',
      `
Examples:
  $ svc service providers models gateway
  $ svc service providers update gateway --model $(svc service providers models gateway)

The models of a preset stand in the catalog. A model may be typed where the provider has no list.`,
    )
    .action(async (name: string, options: ConsoleOptions) => {
      const { fetchModels } = await import('../service/service-probes.ts');
      finish(await fetchModels(name, options, context));
    });
  withConsoleOptions(providers.command('test'))
    .description('Send one tiny request to the default model; exit 1 when it fails')
    .argument('<name>', 'from the list')
    .addHelpText('after', '\nExamples:\n  $ svc service providers test gateway')
    .action(async (name: string, options: ConsoleOptions) => {
      const { testProvider } = await import('../service/service-probes.ts');
      finish(await testProvider(name, options, context));
    });
  withConsoleOptions(providers.command('fingerprint'))
    .description('Compare a credential from stdin with the saved one; exit 1 when it is another')
    .argument('<name>', 'from the list')
    .addHelpText('after', '\nExamples:\n  $ svc service providers fingerprint claude < key.txt')
    .action(async (name: string, options: ConsoleOptions) => {
      const { compareCredential } = await import('../service/service-probes.ts');
      finish(await compareCredential(name, options, context));
    });
}

function withProviderOptions(command: Command): Command {
  return withConsoleOptions(command)
    .option('--model <name...>', 'the models that it serves; a star may stand at the end')
    .option('--default-model <name>', 'for requests without one; else the first of --model')
    .option('--header <pair...>', 'headers of its own, as NAME: VALUE')
    .option('--query <pair...>', 'query values of its own, as NAME=VALUE')
    .option('--key-stdin', 'read the credential from stdin');
}
