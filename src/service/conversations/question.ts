import type { ValidationIssue } from '../../protocol/problem.ts'
import { issue } from '../http/validation.ts'
import type { Turn } from '../interactions/interactions.ts'

/** A message of a chat or of a response's input. */
export interface Message {
  readonly role: 'system' | 'developer' | 'user' | 'assistant'
  readonly content: string | readonly { readonly text: string }[]
}

/** The question of a conversation, and its context. */
export interface Conversation {
  /** The last message of the user. */
  readonly question: string
  /** The messages of the system, and of the developer; empty if there are none. */
  readonly instructions: string
  /** The earlier messages of the user and the assistant, oldest first. */
  readonly turns: readonly Turn[]
}

/** Reads a conversation. `loc` is its path in the request. Returns issues if it asks nothing. */
export function readConversation(
  messages: readonly Message[],
  loc: readonly string[],
): Conversation | { readonly issues: readonly ValidationIssue[] } {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const question = messageText(messages[last])
  if (question.trim() === '') {
    return { issues: [issue(loc, 'Expected a message of the role user, and the last one not to be empty')] }
  }
  const instructions = messages
    .filter(({ role }) => role === 'system' || role === 'developer')
    .map(messageText)
    .filter((text) => text !== '')
  return { question, instructions: instructions.join('\n\n'), turns: turnsOf(messages.slice(0, last)) }
}

/** Pairs each message of the user with the answer that follows it. */
function turnsOf(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = []
  let open: Turn | undefined
  for (const message of messages) {
    if (message.role === 'user') {
      if (open !== undefined) turns.push(open)
      open = { question: messageText(message), answer: '' }
    } else if (message.role === 'assistant') {
      turns.push({ question: open?.question ?? '', answer: messageText(message) })
      open = undefined
    }
  }
  if (open !== undefined) turns.push(open)
  return turns
}

function messageText(message: Message | undefined): string {
  const content = message?.content ?? ''
  return typeof content === 'string' ? content : content.map(({ text }) => text).join('\n')
}
