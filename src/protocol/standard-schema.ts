/** A schema of any library that follows Standard Schema, version 1 (https://standardschema.dev): zod, valibot, arktype and others. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    /** Checks a value. It may be asynchronous, and give another value than it got. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    /** For the compiler only. */
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

/** What a schema says of a value. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** One thing that is wrong with a value. */
export interface StandardIssue {
  readonly message: string
  /** Where in the value, from the outside in. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** A schema that can say itself as JSON Schema: Standard JSON Schema, version 1, which zod has from 4.2 on. */
export interface StandardJsonSchema {
  readonly '~standard': {
    readonly jsonSchema: {
      /** The JSON Schema of what the schema takes in. Throws where there is none. */
      readonly input: (options: { readonly target: string }) => Readonly<Record<string, unknown>>
    }
  }
}

/** The schema of an answer: one that can say itself as JSON Schema, or any Standard Schema with its JSON Schema beside it. */
export type AnswerSchema<Content> =
  | (StandardSchema<Content> & StandardJsonSchema)
  | {
      readonly schema: StandardSchema<Content>
      readonly jsonSchema: Readonly<Record<string, unknown>>
    }
