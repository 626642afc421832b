export { CODES, type Code, type CodeEntry } from './codes.ts'
export { type FieldError, Problem, type ProblemExtensions } from './problem.ts'
