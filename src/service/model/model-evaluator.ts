import { z } from 'zod'
import type { FindAllRequest } from '../../protocol/find-all.ts'
import type { FieldBasis } from '../../protocol/output.ts'
import { type Evaluator, passagesFor, type Verdict, verdictText } from '../find-all/evaluate.ts'
import type { EntityPassage } from '../find-all/entity-text.ts'
import { ask, messageOf } from './ask.ts'
import { ModelError } from './model-error.ts'
import type { ModelServer } from './model-server.ts'
import { conditionsPromptOf } from './prompt.ts'
import { checkQuotes, findWords } from './quotes.ts'
import { readReply, type Reply } from './reply.ts'

/** Maximum length of the passages of a candidate that a model reads, in characters. */
const MAX_CHARACTERS = 32_000
/** How long a server that failed is not asked again, in ms of real time: a run has many candidates. */
const PAUSE = 60_000

const claimSchema = z.object({ is_matched: z.boolean(), value: z.string().max(5_000).nullish() })

/**
 * Judges conditions with a model, all of a candidate at once. Its judgement of a condition counts only if one of its quotes is in the
 * passages word for word. If the model fails, the fallback judges, and the reasoning of each basis says why. A server that fails is not
 * asked again for a minute.
 */
export function modelEvaluator(server: Pick<ModelServer, 'complete'>, fallback: Evaluator): Evaluator {
  let outage: { readonly reason: unknown; readonly until: number } | undefined

  const complete: ModelServer['complete'] = async (messages, signal) => {
    if (outage !== undefined && performance.now() < outage.until) throw outage.reason
    try {
      return await server.complete(messages, signal)
    } catch (reason) {
      if (!signal.aborted) outage = { reason, until: performance.now() + PAUSE }
      throw reason
    }
  }

  return {
    async evaluate(candidate, request, passages, signal) {
      const selected = select(request, passages)
      try {
        return await ask(
          { complete },
          (complaint) => conditionsPromptOf(candidate, request, selected, complaint),
          async (reply) => verdictsOf(readReply(reply), request, selected),
          signal,
        )
      } catch (error) {
        signal.throwIfAborted()
        const verdicts = await fallback.evaluate(candidate, request, passages, signal)
        const why = `Judged without the model, which gave no answer that can be used: ${messageOf(error)}.`
        return verdicts.map(({ isMatched, value, basis }) => ({ isMatched, value, basis: noted(basis, why) }))
      }
    },
  }
}

function noted(basis: FieldBasis, why: string): FieldBasis {
  return { ...basis, reasoning: `${basis.reasoning} ${why}` }
}

/** The best passages, taken from each condition alternately, in the order of the documents; without any, the passages at the beginning. */
function select(request: FindAllRequest, passages: readonly EntityPassage[]): EntityPassage[] {
  const ranked = request.match_conditions.map((condition) => passagesFor(condition, request, passages))
  const longest = Math.max(...ranked.map(({ length }) => length))
  const inTurn = Array.from({ length: longest }, (_, rank) =>
    ranked.flatMap((list) => list.slice(rank, rank + 1)),
  )
  const chosen = new Set<EntityPassage>()
  let characters = 0
  for (const passage of new Set([...inTurn.flat(), ...passages])) {
    characters += passage.text.length
    if (characters > MAX_CHARACTERS) break
    chosen.add(passage)
  }
  return passages.filter((passage) => chosen.has(passage))
}

/** The verdicts of a reply. Throws a {@link ModelError}, in words for the model, for a condition without a valid one. */
function verdictsOf(
  { answer, quotes }: Reply,
  { match_conditions }: FindAllRequest,
  passages: readonly EntityPassage[],
): Verdict[] {
  return match_conditions.map(({ name }) => {
    const own =
      answer !== null && typeof answer === 'object' && Object.hasOwn(answer, name) ? answer[name] : undefined
    const { data: claim } = claimSchema.safeParse(own)
    if (claim === undefined) {
      throw new ModelError(
        `"answer" has no {"is_matched": true or false, "value": TEXT or null} for ${JSON.stringify(name)}`,
      )
    }
    const { citations, dropped } = checkQuotes(
      quotes.filter(({ field = match_conditions[0]?.name }) => field === name),
      passages,
    )
    const excerpts = citations.flatMap((citation) => citation.excerpts ?? [])
    const isQuoted = excerpts.length > 0
    const isMatched = isQuoted ? claim.is_matched : null
    // A value without a quote has no evidence.
    const value = isQuoted ? (claim.value ?? excerpts.join(' ')) : null
    const isWordForWord =
      value !== null && excerpts.some((excerpt) => findWords(excerpt, value) !== undefined)
    const unproven =
      claim.is_matched && !isQuoted ? ' The model says that it is met, but has no quote for it.' : ''
    return {
      isMatched,
      value,
      basis: {
        field: name,
        reasoning:
          `The model read ${passages.length} passages. ` +
          `${excerpts.length} of its ${excerpts.length + dropped} quotes stand in them word for word.${unproven} ` +
          verdictText(isMatched),
        citations,
        confidence: isWordForWord ? 'high' : isQuoted ? 'medium' : 'low',
      },
    }
  })
}
