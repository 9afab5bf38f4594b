//! `#[derive(Message)]` for `hob-actor`, which re-exports it: use it from there.
//!
//! It writes `impl Message` and nothing else. What a message answers with is in `#[answer(Type)]`;
//! without it, `()`.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Attribute, DeriveInput, Error, GenericParam, Result, Type, parse_quote};

/// The name of the attribute that says the answer's type.
const ANSWER: &str = "answer";

/// Makes a type a message of hob-actor's. `#[answer(Type)]` says what an ask of it gives back; a
/// type without it is only told.
#[proc_macro_derive(Message, attributes(answer))]
pub fn message(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    implementation(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn implementation(input: &DeriveInput) -> Result<Tokens> {
    let answer = answer(&input.attrs)?;
    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            // A message travels between threads, and so does all that it holds.
            parameter.bounds.push(parse_quote!(::core::marker::Send));
            parameter.bounds.push(parse_quote!('static));
        }
    }
    let name = &input.ident;
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        impl #parameters ::hob_actor::Message for #name #arguments #conditions {
            type Answer = #answer;
        }
    })
}

/// What the one `#[answer(Type)]` says, or `()`.
fn answer(attributes: &[Attribute]) -> Result<Type> {
    let mut found = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(ANSWER)) {
        if found.is_some() {
            return Err(Error::new_spanned(
                attribute,
                "a message has one answer: keep one of them",
            ));
        }
        let answer: Type = attribute.parse_args().map_err(|_| {
            let text = "an answer is one type in parentheses, like #[answer(String)]; a message \
                        that is only told needs none";
            Error::new_spanned(attribute, text)
        })?;
        found = Some(answer);
    }
    Ok(found.unwrap_or_else(|| parse_quote!(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(input: Tokens) -> Result<String> {
        implementation(&syn::parse2(input)?).map(|tokens| tokens.to_string())
    }

    #[test]
    fn the_answer_is_what_the_attribute_says_or_nothing() {
        let asked = written(quote! { #[answer(Vec<u8>)] struct Read { path: String } }).unwrap();
        let wanted = quote! { impl ::hob_actor::Message for Read { type Answer = Vec<u8>; } };
        assert_eq!(asked, wanted.to_string());
        let told = written(quote! { enum Go { Left, Right } }).unwrap();
        assert_eq!(
            told,
            quote! { impl ::hob_actor::Message for Go { type Answer = (); } }.to_string()
        );
    }

    #[test]
    fn parameters_are_bound_as_messages_are() {
        let one = written(quote! { #[answer(T)] struct Keep<T: Clone>(T) where T: Sync; }).unwrap();
        let wanted = quote! {
            impl<T: Clone + ::core::marker::Send + 'static> ::hob_actor::Message for Keep<T>
            where T: Sync { type Answer = T; }
        };
        assert_eq!(one, wanted.to_string());
    }

    #[test]
    fn an_attribute_that_names_no_type_says_how_it_is_written() {
        for wrong in [
            quote! { #[answer] struct A; },
            quote! { #[answer()] struct A; },
            quote! { #[answer = "String"] struct A; },
            quote! { #[answer(u8, u8)] struct A; },
        ] {
            let error = written(wrong).unwrap_err().to_string();
            assert!(error.contains("like #[answer(String)]"), "{error}");
        }
        let twice = written(quote! { #[answer(u8)] #[answer(u8)] struct A; });
        assert!(twice.unwrap_err().to_string().contains("one answer"));
    }
}
