import type { Command } from 'commander'
import type { EventLog, LogJob } from 'rivulet/log'
import type * as Rules from 'rivulet/rules'
import { UsageError } from '../exit.ts'

/** Begins a notifier over a log. The rules are imported when they are used. */
export type BeginNotifier = (
  rules: typeof Rules,
  log: EventLog,
  onProblem: (problem: Rules.NotifyProblem) => void,
) => LogJob

/**
 * Adds the options of a notifier to a command. What it returns reads them: undefined if the notifier is not wanted. That throws a UsageError
 * for options that cannot be right.
 */
type AddNotifier = (command: Command) => () => BeginNotifier | undefined

/** The notifiers, in the order of their options. A new one is added here. */
export const NOTIFIERS: readonly AddNotifier[] = [addAlertmanager, addWebhook, addSlack]

function addAlertmanager(command: Command): () => BeginNotifier | undefined {
  command.option('--alertmanager <urls...>', 'send alerts to Alertmanager: all instances of a cluster')
  return () => {
    const { alertmanager: urls } = command.opts<{ readonly alertmanager?: readonly string[] }>()
    if (urls === undefined) return undefined
    return (rules, log, onProblem) => rules.notifyAlertmanager(log, { urls, onProblem })
  }
}

function addWebhook(command: Command): () => BeginNotifier | undefined {
  command
    .option('--webhook-url <url>', 'post alerts to a webhook, as CloudEvents')
    .option('--webhook-secret-env <name>', 'sign the posts with the secret in this environment variable')
  return () => {
    const { webhookUrl: url, webhookSecretEnv: name } = command.opts<{
      readonly webhookUrl?: string
      readonly webhookSecretEnv?: string
    }>()
    if (url === undefined && name !== undefined)
      throw new UsageError('--webhook-secret-env is for --webhook-url')
    if (url === undefined) return undefined
    const secrets = name === undefined ? {} : { secrets: secretOf(name) }
    return (rules, log, onProblem) => rules.notifyWebhook(log, { url, ...secrets, onProblem })
  }
}

function addSlack(command: Command): () => BeginNotifier | undefined {
  command.option('--slack-url-env <name>', 'post alerts to the Slack webhook in this environment variable')
  return () => {
    const { slackUrlEnv: name } = command.opts<{ readonly slackUrlEnv?: string }>()
    if (name === undefined) return undefined
    const url = secretOf(name)
    return (rules, log, onProblem) => rules.notifySlack(log, { url, onProblem })
  }
}

/** The secret in an environment variable. */
function secretOf(name: string): string {
  const secret = process.env[name]
  if (secret !== undefined && secret !== '') return secret
  throw new UsageError(`the environment variable ${name} is not set`)
}
