//! `#[derive(Saved)]` for the values of blocks, of which `watershed_state` tells.
//!
//! The code that it writes is not generic over what it writes to, so that one crate compiles it for all.

use proc_macro::TokenStream as Input;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, Generics, LitStr, WhereClause, parse_macro_input, parse_quote};

/// Writes a type as its fields one after the other, an enumeration as the number of the variant and its fields.
///
/// Every type parameter has to be `Saved` too, unless `#[saved(bound = "...")]` on the type says what has to hold instead.
#[proc_macro_derive(Saved, attributes(saved))]
pub fn saved(input: Input) -> Input {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let (put, take) = match &input.data {
        Data::Struct(data) => {
            let (pattern, put, take) = fields(&quote!(Self), &data.fields);
            (quote! { let #pattern = self; #put }, quote! { ::std::result::Result::Ok(#take) })
        }
        Data::Enum(data) => {
            let (mut puts, mut takes) = (Vec::new(), Vec::new());
            for (number, variant) in data.variants.iter().enumerate() {
                let (number, variant_name) = (number as u32, &variant.ident);
                let (pattern, put, take) = fields(&quote!(Self::#variant_name), &variant.fields);
                puts.push(quote! { #pattern => { to.variant(#number); #put } });
                takes.push(quote! { #number => #take, });
            }
            let put = quote! { match self { #(#puts)* } };
            (
                put,
                quote! { ::std::result::Result::Ok(match from.variant()? { #(#takes)* _ => return ::std::result::Result::Err(from.no_variant()) }) },
            )
        }
        Data::Union(_) => {
            return Err(syn::Error::new_spanned(name, "a union does not say which of its fields is there"));
        }
    };
    let bounds = bounds(input)?;
    let (generics, arguments, _) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::watershed_state::Saved for #name #arguments #bounds {
            #[cold]
            fn put(&self, to: &mut ::watershed_state::Saver) {
                #put
            }

            #[cold]
            fn take(from: &mut ::watershed_state::Loader<'_>) -> ::std::result::Result<Self, ::watershed_state::Mismatch> {
                #take
            }
        }
    })
}

/// The pattern of a struct or variant, what writes its fields, and what reads it.
fn fields(of: &TokenStream, fields: &Fields) -> (TokenStream, TokenStream, TokenStream) {
    let names: Vec<_> = (0..fields.len()).map(|number| format_ident!("field_{number}")).collect();
    let members: Vec<_> = fields.members().collect();
    (
        quote! { #of { #(#members: #names),* } },
        quote! { #(::watershed_state::Saved::put(#names, to);)* },
        quote! { #of { #(#members: ::watershed_state::Saved::take(from)?),* } },
    )
}

/// What has to hold of the type parameters.
fn bounds(input: &DeriveInput) -> syn::Result<Option<WhereClause>> {
    let Generics { where_clause, .. } = &input.generics;
    let mut clause: WhereClause = where_clause.clone().unwrap_or_else(|| parse_quote!(where));
    let mut given = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("saved")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("bound") {
                return Err(meta.error("only `bound` is known"));
            }
            given = true;
            let bound: LitStr = meta.value()?.parse()?;
            if !bound.value().is_empty() {
                clause.predicates.push(bound.parse()?);
            }
            Ok(())
        })?;
    }
    if !given {
        clause.predicates.extend(input.generics.type_params().map(|parameter| -> syn::WherePredicate {
            let name = &parameter.ident;
            parse_quote!(#name: ::watershed_state::Saved)
        }));
    }
    Ok((!clause.predicates.is_empty()).then_some(clause))
}
