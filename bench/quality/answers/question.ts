/**
 * The answer that a question expects: `'unknown'` if the documents do not say, else what its text has to contain.
 *
 * An entry is a text, or a regular expression written `/…/flags`. A text is found without regard to case, white space, Markdown's
 * marks and the kind of quotes and dashes, and only between word boundaries: `8` is not in `18`.
 */
export type ExpectedText =
  | 'unknown'
  | {
      /** The answer contains one of them. */
      readonly accept: readonly string[]
      /** The answer contains none of them. Default: no restriction. */
      readonly refuse?: readonly string[]
    }

/**
 * The values that a field of a JSON answer may have, or `'unknown'`. A string is compared as in {@link ExpectedText}, but with the
 * whole value; a regular expression `/…/flags` matches any part of it, unless anchored. Numbers, booleans and null are equal in
 * type and value. A list has the same elements in any order.
 */
export type ExpectedField = 'unknown' | readonly unknown[]

interface QuestionBase {
  /** Unique within both halves. */
  readonly id: string
  /** The name of the package or thing that the question is about: it selects the half. */
  readonly subject: string
  /** Default `base`. */
  readonly processor?: 'lite' | 'base' | 'core'
  /** Where the answer is, or why there is none; for the reader only. */
  readonly note?: string
}

/** A question answered in words (a chat completion) or as text (a task run with a text schema). */
interface TextQuestion extends QuestionBase {
  readonly form: 'words' | 'text'
  readonly question: string
  readonly expect: ExpectedText
}

/** A question answered by a task run with a JSON schema. */
interface JsonQuestion extends QuestionBase {
  readonly form: 'json'
  /** The input of the run: text, or an object such as `{ "package": "undici" }`. */
  readonly question: string | Readonly<Record<string, unknown>>
  /** JSON Schema of an object. */
  readonly schema: Readonly<Record<string, unknown>>
  /** An entry for each field that is scored; `'unknown'` for all fields of the schema. */
  readonly expect: 'unknown' | Readonly<Record<string, ExpectedField>>
}

/** An item of `bench/quality/questions/`. */
export type Question = TextQuestion | JsonQuestion
