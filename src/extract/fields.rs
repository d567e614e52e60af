//! Names of fields, for [`Header`](crate::Header): `Header<'r, UserAgent>`.
//!
//! A name that is missing here is four lines in your program; see [`FieldName`].

use super::header::FieldName;

macro_rules! field_names {
    ($($name:ident = $spelt:literal $($list:ident)?, $reference:literal;)*) => {$(
        #[doc = concat!("`", $spelt, "` (", $reference, ").")]
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl FieldName for $name {
            const NAME: &'static str = $spelt;
            $(const LIST: bool = { stringify!($list); true };)?
        }
    )*};
}

field_names! {
    Accept = "Accept" list, "RFC 9110 12.5.1";
    AcceptEncoding = "Accept-Encoding" list, "RFC 9110 12.5.3";
    AcceptLanguage = "Accept-Language" list, "RFC 9110 12.5.4";
    Authorization = "Authorization", "RFC 9110 11.6.2";
    CacheControl = "Cache-Control" list, "RFC 9111 5.2";
    ContentEncoding = "Content-Encoding" list, "RFC 9110 8.4";
    ContentLanguage = "Content-Language" list, "RFC 9110 8.5";
    ContentType = "Content-Type", "RFC 9110 8.3";
    Forwarded = "Forwarded" list, "RFC 7239 4";
    From = "From", "RFC 9110 10.1.2";
    IdempotencyKey = "Idempotency-Key", "draft-ietf-httpapi-idempotency-key-header";
    IfMatch = "If-Match" list, "RFC 9110 13.1.1";
    IfModifiedSince = "If-Modified-Since", "RFC 9110 13.1.3";
    IfNoneMatch = "If-None-Match" list, "RFC 9110 13.1.2";
    IfRange = "If-Range", "RFC 9110 13.1.5";
    IfUnmodifiedSince = "If-Unmodified-Since", "RFC 9110 13.1.4";
    LastEventId = "Last-Event-ID", "HTML 9.2.4";
    Origin = "Origin", "RFC 6454 7";
    Range = "Range", "RFC 9110 14.2";
    Referer = "Referer", "RFC 9110 10.1.3";
    SecFetchSite = "Sec-Fetch-Site", "W3C Fetch Metadata 2.4";
    Traceparent = "traceparent", "W3C Trace Context 3.2";
    UserAgent = "User-Agent", "RFC 9110 10.1.5";
    Via = "Via" list, "RFC 9110 7.6.3";
    XForwardedFor = "X-Forwarded-For" list, "by custom";
    XForwardedProto = "X-Forwarded-Proto", "by custom";
    XRequestId = "X-Request-ID", "by custom";
    XRequestedWith = "X-Requested-With", "by custom";
}
