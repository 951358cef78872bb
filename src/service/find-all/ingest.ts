import type { FindAllSchema, MatchCondition } from '../../protocol/find-all.ts'
import { words } from '../corpus/terms.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** The words before what an objective looks for. */
const REQUEST =
  /^\s*(?:please\s+)?(?:(?:can|could) you\s+)?(?:i(?:'m| am)? (?:want|need|looking for)(?: to find)?\s+)?(?:find|list|show|identify|get|give|search for|discover|collect|name|what are|which are|which|what)?\s*(?:me\s+|us\s+)?(?:out\s+)?(?:all(?: of)?\s+|every\s+|each\s+|any\s+|some\s+)?(?:the\s+)?/i
/** Words that begin a requirement of an entity. */
const CLAUSE =
  /\s+(?=(?:that|which|who|whose|where|with|without|having|using|based|located|founded|made|written|working|for|from|in|on|about|under|over)\s)/i
/** The words at which one requirement ends and the next begins. */
const NEXT_CLAUSE =
  /\s*(?:,|;)?\s+(?:and|but)\s+(?=(?:that|which|who|whose|where|with|without|having|using|based|located|founded|made|written|are|is|was|were|has|have|had|can|do|does|did|support|supports|offer|offers|provide|provides|run|runs|need|needs|use|uses)\b)|\s*[,;]\s+(?=(?:that|which|who|whose|where|with|without|having|using|based|located|founded|made|written)\s)|\s+(?=(?:that|which|who|whose)\s)/i
/** Maximum number of conditions. */
const MAX_CONDITIONS = 20
/** Maximum number of words of a condition's name. */
const NAME_WORDS = 6
/** Maximum length of a type of entity and of a condition's name, in characters. */
const MAX_NAME = 200
/** Maximum length of a condition, in characters. */
const MAX_CONDITION = 4_000

/**
 * Reads the type of the entities and their conditions out of an objective, from its form alone: `packages that parse XML and
 * have no dependencies` has two conditions, and so has `packages about logging that have an MIT licence`. It is deterministic. An objective
 * without a condition is itself the condition.
 */
export function ingest(objective: string): FindAllSchema {
  const wanted = objective.replace(REQUEST, '').replace(/[\s.?!]+$/, '') || objective.trim()
  const [head = wanted, ...rest] = wanted.split(CLAUSE)
  const clauses = rest.length === 0 ? [] : wanted.slice(head.length).trim().split(NEXT_CLAUSE)
  const entity_type = cutText(head.trim(), MAX_NAME)
  const kind = singular(words(entity_type).at(-1) ?? 'entity')
  const conditions = clauses
    .map((clause) => cutText(clause.trim(), MAX_CONDITION))
    .filter((clause) => clause !== '')
    .slice(0, MAX_CONDITIONS)
    .map((clause) => ({
      name: nameOf(clause),
      description: `The ${kind} must match: ${withoutPronoun(clause)}`,
    }))
  const given =
    conditions.length > 0
      ? conditions
      : [{ name: nameOf(entity_type), description: `It must be one of: ${entity_type}` }]
  return { objective, entity_type, match_conditions: distinct(given) }
}

/** `that parse XML` requires `parse XML`. */
function withoutPronoun(clause: string): string {
  return clause.replace(/^(?:that|which|who)\s+/i, '')
}

function nameOf(clause: string): string {
  const name = words(withoutPronoun(clause)).slice(0, NAME_WORDS).join('_')
  return cutText(name, MAX_NAME) || 'condition'
}

function singular(word: string): string {
  return word.replace(/ies$/, 'y').replace(/(?<=[^s])s$/, '')
}

/** Numbers the names that occur again, since each is a field of the output. */
function distinct(conditions: readonly MatchCondition[]): MatchCondition[] {
  const seen = new Map<string, number>()
  return conditions.map(({ name, description }) => {
    const count = (seen.get(name) ?? 0) + 1
    seen.set(name, count)
    return { name: count === 1 ? name : `${name}_${count}`, description }
  })
}
